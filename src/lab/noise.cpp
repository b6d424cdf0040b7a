#include "lab/noise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "observe/monitor/host_watch.h"

namespace lockstep::lab {
namespace {

/// A kind of disturbance: its field, its limit, and its sentence.
struct NoiseKind {
  const char* field;
  double most;
  const char* text;
};
constexpr std::array<NoiseKind, 4> kKinds = {{
    {"others_share", kMostOthers, "other programs used {:.0f} % of the machine"},
    {"stolen_share", kMostStolen, "the host stole {:.0f} % of the machine"},
    {"missed_share", kMostMissed, "its nodes missed {:.0f} % of their CPU"},
    {"stopped_share", kMostStopped, "Ctrl-Z stopped it for {:.0f} % of its time"},
}};

double value_or_zero(const Measured& values, const char* field) {
  const auto found = values.find(field);
  return found == values.end() || !std::isfinite(found->second) ? 0 : found->second;
}

}  // namespace

void add_stop(Measured& values, double share) {
  values["stopped_share"] = share;
  if (disturbance(values) > 1) values["disturbed"] = 1;
}

void keep_noise(const Measured& before, Measured& values) {
  const auto keep = [&](const char* field) {
    const auto found = before.find(field);
    if (found != before.end()) values[field] = found->second;
  };
  for (const NoiseKind& kind : kKinds) keep(kind.field);
  keep("disturbed");
}

void add_noise(Measured& values, const observe::HostUse& use, double promised) {
  const double all = use.seconds * use.cores;
  if (!(all > 0)) return;
  values["others_share"] = use.others / all;
  values["stolen_share"] = use.stolen / all;
  if (promised > 0) values["missed_share"] = use.missed / (use.seconds * std::min(promised, use.cores));
  values["disturbed"] = disturbance(values) > 1 ? 1 : 0;
}

bool is_disturbed(const Measured& values) { return value_or_zero(values, "disturbed") > 0; }

double disturbance(const Measured& values) {
  double most = 0;
  for (const NoiseKind& kind : kKinds) most = std::max(most, value_or_zero(values, kind.field) / kind.most);
  return most;
}

std::string disturbed_text(const Measured& values) {
  std::string text;
  if (!is_disturbed(values)) return text;
  for (const NoiseKind& kind : kKinds) {
    const double share = value_or_zero(values, kind.field);
    if (share > kind.most) {
      text += (text.empty() ? "" : ", ") + fmt::format(fmt::runtime(kind.text), 100 * share);
    }
  }
  return text;
}

}  // namespace lockstep::lab
