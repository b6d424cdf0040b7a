// Decides whether something else than the run itself used the machine: other programs, the host of a virtual machine,
// nodes that did not get their CPU, or Ctrl-Z stopped it. A disturbed run has wrong times. Its measured values say how
// much (`others_share`, `stolen_share`, `missed_share`, `stopped_share`) and whether that is too much (`disturbed`).
// Pure functions; any thread.
#pragma once

#include <string>

#include "lab/fields.h"

namespace lockstep::observe {
struct HostUse;
}

namespace lockstep::lab {

/// Largest shares that do not disturb a run: of the cores' time, for `kMostMissed` of the nodes' promised time.
inline constexpr double kMostOthers = 0.10;
inline constexpr double kMostStolen = 0.02;
inline constexpr double kMostMissed = 0.05;
inline constexpr double kMostStopped = 0.001;

/// Adds that Ctrl-Z stopped a run for a share of its time. Call it before `add_noise`.
void add_stop(Measured& values, double share);
/// Adds what the machine did during a run with nodes of so many cores together (0: none). Nothing if it is unknown.
void add_noise(Measured& values, const observe::HostUse& use, double promised);

/// Takes over what the machine did during a run from what was measured of it before.
void keep_noise(const Measured& before, Measured& values);

/// Returns whether the run was disturbed; unknown counts as no.
bool is_disturbed(const Measured& values);
/// Returns a number to compare disturbed runs by: 1 is the limit.
double disturbance(const Measured& values);
/// Returns "other programs used 43 % of the machine, the host stole 3 %"; empty if the run was not disturbed.
std::string disturbed_text(const Measured& values);

}  // namespace lockstep::lab
