#include "simulation/explore.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>

namespace lockstep::simulation {
namespace {

constexpr size_t kMostLines = 300;  ///< of a history that is printed, unless --lines=N says otherwise

/// Returns the value of a flag in this program's command line.
std::optional<uint64_t> flag(const std::string& name) {
  std::ifstream file("/proc/self/cmdline");
  const std::string line{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const size_t found = line.find(std::string(1, '\0') + name + "=");
  if (found == std::string::npos) return std::nullopt;
  return std::stoull(line.substr(found + name.size() + 2));
}

std::string report_on(const Suite& suite, uint64_t seed, const std::vector<Fault>& all) {
  const auto fails = [&](const std::vector<Fault>& faults) { return !suite.play(seed, faults, false).failure.empty(); };
  const std::vector<Fault> faults = shrink(all, fails);
  const Played played = suite.play(seed, faults, true);
  std::string text = fmt::format("{}, seed {}: {}\n", suite.name, seed, played.failure);
  text += fmt::format("{} of {} faults are enough. Again: --seed={} --histories=1\n", faults.size(), all.size(), seed);
  const size_t most = number_of_flag("lines", kMostLines);
  const size_t first = played.history.size() - std::min(played.history.size(), most);
  for (size_t i = 0; i < first; ++i) {
    const bool told = played.history[i].starts_with("FAULT") || played.history[i].starts_with("WORLD");
    if (told) text += played.history[i] + '\n';
  }
  if (first > 0) text += fmt::format("... {} lines before\n", first);
  for (size_t i = first; i < played.history.size(); ++i) text += played.history[i] + '\n';
  return text;
}

}  // namespace

Played played(const World& world) { return {world.failure(), world.digest(), world.events(), world.history()}; }

Explored explore(const Suite& suite, uint64_t seed, uint64_t histories) {
  Explored explored;
  for (uint64_t i = 0; i < histories; ++i) {
    const std::vector<Fault> faults = suite.plan(seed + i);
    const Played one = suite.play(seed + i, faults, false);
    ++explored.histories;
    explored.events += one.events;
    if (one.failure.empty()) continue;
    explored.failed = seed + i;
    explored.report = report_on(suite, seed + i, faults);
    break;
  }
  return explored;
}

uint64_t number_of_flag(const std::string& name, uint64_t otherwise) { return flag("--" + name).value_or(otherwise); }

Choice choice(uint64_t histories) { return {flag("--seed").value_or(1), flag("--histories").value_or(histories)}; }

}  // namespace lockstep::simulation
