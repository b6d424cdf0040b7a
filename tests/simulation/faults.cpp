#include "simulation/faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace lockstep::simulation {

std::vector<Fault> plan_faults(Random& random, const FaultMix& mix, size_t count, int processes, int machines) {
  const std::array<double, 14> weights = {
      mix.kill,      mix.stop,      mix.power_cut, mix.cut,       mix.cut_one_way, mix.half_open,     mix.reset,
      mix.disk_full, mix.disk_slow, mix.reject,    mix.interrupt, mix.disk_lost,   mix.half_open_one, mix.reset_one};
  double sum = 0;
  for (const double weight : weights) sum += weight;
  std::vector<Fault> faults;
  for (size_t i = 0; i < count; ++i) {
    double left = random.between(0, sum);
    size_t kind = 0;
    while (kind + 1 < weights.size() && left >= weights[kind]) left -= weights[kind++];
    Fault fault;
    fault.kind = static_cast<FaultKind>(kind);
    fault.at = random.between(0, mix.until);
    // Short ones and ones beyond the limit of silence are about as frequent.
    fault.seconds = random.chance(0.5) ? random.between(0.01, 1) : random.between(1, mix.longest);
    const bool of_machines = fault.kind == FaultKind::power_cut || fault.kind == FaultKind::cut ||
                             fault.kind == FaultKind::cut_one_way || fault.kind == FaultKind::disk_full ||
                             fault.kind == FaultKind::disk_slow || fault.kind == FaultKind::reject ||
                             fault.kind == FaultKind::disk_lost;
    const auto among = static_cast<size_t>(of_machines ? machines : processes);
    fault.a = static_cast<int>(random.below(among));
    fault.b =
        among < 2 ? fault.a : static_cast<int>((static_cast<size_t>(fault.a) + 1 + random.below(among - 1)) % among);
    const bool for_good = random.chance(0.125);
    if (fault.kind == FaultKind::kill && !mix.all_return && for_good) fault.seconds = -1;
    faults.push_back(fault);
  }
  std::stable_sort(faults.begin(), faults.end(), [](const Fault& x, const Fault& y) { return x.at < y.at; });
  return faults;
}

std::string describe(const Fault& fault, const std::function<std::string(int)>& process,
                     const std::function<std::string(int)>& machine) {
  const std::string when = fmt::format("{:.3f} s: ", fault.at);
  const std::string length = fmt::format(" for {:.3f} s", fault.seconds);
  switch (fault.kind) {
    case FaultKind::kill:
      return when + "kill " + process(fault.a) + (fault.seconds < 0 ? " for good" : ", back after" + length.substr(4));
    case FaultKind::stop:
      return when + "stop " + process(fault.a) + length;
    case FaultKind::power_cut:
      return when + "no power at " + machine(fault.a) + length;
    case FaultKind::cut:
      return when + "no network between " + machine(fault.a) + " and " + machine(fault.b) + length;
    case FaultKind::cut_one_way:
      return when + "no packets from " + machine(fault.a) + " to " + machine(fault.b) + length;
    case FaultKind::reject:
      return when + "resets between " + machine(fault.a) + " and " + machine(fault.b) + length;
    case FaultKind::half_open:
      return when + "connections of " + process(fault.a) + " and " + process(fault.b) + " swallow everything";
    case FaultKind::reset:
      return when + "connections of " + process(fault.a) + " and " + process(fault.b) + " break";
    case FaultKind::interrupt:
      return when + "interrupt " + process(fault.a);
    case FaultKind::disk_lost:
      return when + "no power and then an empty disk at " + machine(fault.a) + length;
    case FaultKind::half_open_one:
      return when + "a connection of " + process(fault.a) + " and " + process(fault.b) + " swallows everything";
    case FaultKind::reset_one:
      return when + "a connection of " + process(fault.a) + " and " + process(fault.b) + " breaks";
    case FaultKind::disk_full:
      return when + "full disk of " + machine(fault.a) + length;
    case FaultKind::disk_slow:
      return when + "slow disk of " + machine(fault.a) + length;
  }
  return when;
}

std::vector<Fault> shrink(std::vector<Fault> faults, const std::function<bool(const std::vector<Fault>&)>& fails) {
  for (size_t part = (faults.size() + 1) / 2; part > 0 && !faults.empty();) {
    bool removed = false;
    for (size_t first = 0; first < faults.size();) {
      std::vector<Fault> fewer(faults.begin(), faults.begin() + static_cast<ptrdiff_t>(first));
      fewer.insert(fewer.end(), faults.begin() + static_cast<ptrdiff_t>(std::min(faults.size(), first + part)),
                   faults.end());
      if (fails(fewer)) {
        faults = std::move(fewer);
        removed = true;
      } else {
        first += part;
      }
    }
    if (part == 1 && !removed) break;
    part = part == 1 ? 1 : part / 2;
  }
  return faults;
}

}  // namespace lockstep::simulation
