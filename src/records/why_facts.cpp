#include "records/why_facts.h"

#include <algorithm>
#include <cmath>

#include "records/format.h"

namespace lockstep::records {
namespace {

/// Returns how many steps the role itself computed: in the whole run, or, in a cluster, since it was resumed.
double own_steps(const RunRecord& run, const RoleRecord& role) {
  if (const WorkerRow* row = run.worker(role.role); row != nullptr && known(row->iterations)) return row->iterations;
  const double logged = sum(role.phase_log.column("steps"));
  if (logged > 0) return logged;
  return known(run.steps()) ? run.steps() : 0;
}

/// Returns how many of those steps the phases cover.
double covered_steps(const RunRecord& run, const RoleRecord& role) {
  const double all = own_steps(run, role);
  for (const PhaseTotals& phase : role.phases) {
    if (phase.name == "forward" && phase.count > 0) return all > 0 ? std::min(all, phase.count) : phase.count;
  }
  return all;
}

double examples_per_step(const RunRecord& run, const RoleRecord& role) {
  if (const WorkerRow* row = run.worker(role.role); row != nullptr && row->iterations > 0 && known(row->examples)) {
    return row->examples / row->iterations;
  }
  const double whole = run.workers() == 1 ? run.examples() / run.steps() : kUnknown;
  return known(whole) ? whole : run.number_setting("batch") * run.number_setting("accumulate");
}

Pace pace_of(const RunRecord& run, const RoleRecord& role) {
  Pace pace{
      .role = role.role, .host = role.host, .steps = covered_steps(run, role), .seconds = role.all_phase_seconds()};
  pace.examples = pace.steps * examples_per_step(run, role);
  pace.data = role.phase_seconds("data");
  pace.forward = role.phase_seconds("forward");
  pace.backward = role.phase_seconds("backward");
  pace.optimizer = role.phase_seconds("optimizer");
  pace.push = role.phase_seconds("push");
  pace.pull = role.phase_seconds("pull");
  pace.transfer = role.phase_seconds("transfer");
  pace.others = role.phase_seconds("others");
  pace.evaluation = role.phase_seconds("evaluation");
  pace.checkpoint = role.phase_seconds("checkpoint");
  pace.rest = role.phase_seconds("rest");
  return pace;
}

void add(Pace& all, const Pace& pace) {
  for (double Pace::*member : {&Pace::steps, &Pace::examples, &Pace::seconds, &Pace::data, &Pace::forward,
                               &Pace::backward, &Pace::optimizer, &Pace::push, &Pace::pull, &Pace::transfer,
                               &Pace::others, &Pace::evaluation, &Pace::checkpoint, &Pace::for_others, &Pace::rest}) {
    all.*member += pace.*member;
  }
}

/// Leaves out that a worker waited at its first steps for others, who started later. The usual wait is that of the
/// better half of the later lines: in a short run the last one may be long, too, with an evaluation at its end.
void leave_out_start(const RoleRecord& role, Pace& pace) {
  constexpr size_t kFewLines = 3;
  constexpr double kMuchLonger = 5;
  const std::span<const double> others = role.phase_log.column("others");
  const std::span<const double> steps = role.phase_log.column("steps");
  if (others.size() < kFewLines || steps.size() != others.size() || !(steps.front() > 0)) return;
  std::vector<double> usual;
  for (size_t i = 1; i < others.size(); ++i) {
    if (steps[i] > 0 && known(others[i])) usual.push_back(others[i] / steps[i]);
  }
  if (usual.empty()) return;
  std::sort(usual.begin(), usual.end());
  const double each = usual[(usual.size() - 1) / 2] * steps.front();
  if (!known(each) || !known(others.front()) || others.front() <= kMuchLonger * each) return;
  const double start = std::clamp(others.front() - each, 0.0, pace.others);
  pace.others -= start;
  pace.seconds -= start;
  pace.start += start;
}

/// In step, all wait while the chief evaluates or writes a checkpoint, and at the end for a worker whose last
/// evaluation takes longer; that is no part of their steps, either.
void leave_out_waits_for_evaluations(std::vector<Pace>& workers) {
  double longest = 0;
  for (const Pace& pace : workers) longest = std::max(longest, pace.aside());
  for (Pace& pace : workers) {
    const double waited = std::clamp(longest - pace.aside(), 0.0, pace.others);
    pace.others -= waited;
    pace.for_others += waited;
  }
}

struct OwnTime {
  std::string role;
  double seconds = 0;
  double data = 0;
};

std::vector<OwnTime> own_times(const RunRecord& run, const RunFacts& facts) {
  std::vector<OwnTime> times;
  for (const Pace& pace : facts.workers) {
    if (pace.steps > 0) times.push_back({pace.role, pace.own_per_step(), pace.per_step(pace.data)});
  }
  if (times.size() >= 2) return times;
  times.clear();
  for (const WorkerRow& row : run.summary().workers) {
    if (!(row.iterations > 0) || !known(row.compute_seconds)) continue;
    const double load = known(row.load_seconds) ? row.load_seconds : 0;
    times.push_back({row.role, (row.compute_seconds + load) / row.iterations, load / row.iterations});
  }
  return times;
}

/// A step by the phases and by the run's times differ by this share at most: the phases leave out what comes before
/// the first step.
constexpr double kSameStep = 0.05;

void set_step(const RunRecord& run, RunFacts& facts) {
  const double own = facts.all.step_seconds();
  const double whole = run.seconds_per_step();
  const bool together = in_step(run) || run.workers() == 1;
  const bool all_steps = facts.workers.empty() || facts.workers.front().steps >= run.steps();
  facts.step_seconds = own;
  if (!together) {
    facts.step = "step of a worker";
  } else if (!all_steps && run.state == RunState::running && !run.went_on) {
    facts.step = "step so far";  // its logs reach the disk at different times
  } else if (!all_steps) {
    facts.step = "step since it was resumed";
  } else if (std::fabs(whole - own) <= kSameStep * own) {
    facts.step_seconds = whole;
  } else if (whole > own) {
    facts.step = "step without the start-up";
  }
}

}  // namespace

bool came_too_late(const RoleRecord& role) {
  const auto computed = [](const PhaseTotals& phase) { return phase.name == "forward"; };
  return role.has_summary && !role.phases.empty() && std::none_of(role.phases.begin(), role.phases.end(), computed);
}

RunFacts facts_of(const RunRecord& run) {
  RunFacts facts;
  for (const RoleRecord& role : run.roles) {
    if (!role.trains() || role.all_phase_seconds() <= 0 || came_too_late(role)) continue;
    facts.workers.push_back(pace_of(run, role));
    leave_out_start(role, facts.workers.back());
  }
  if (in_step(run) && facts.workers.size() > 1) leave_out_waits_for_evaluations(facts.workers);
  for (const Pace& pace : facts.workers) add(facts.all, pace);
  set_step(run, facts);
  return facts;
}

double began_steps(const RoleRecord& role, const Pace& pace) {
  const double ended = role.phase_log.last("seconds");
  const double started = role.monitor.last("time") - role.monitor.last("seconds");
  return started + ended - pace.seconds;
}

double cores_used(const RoleRecord& role, double began) {
  const std::span<const double> times = role.monitor.column("time");
  const std::span<const double> cpu = role.monitor.column("cpu_percent");
  double seconds = 0;
  double used = 0;
  size_t samples = 0;
  for (size_t i = 1; i < std::min(times.size(), cpu.size()); ++i) {
    const double each = times[i] - times[i - 1];
    if (!(times[i - 1] >= began) || !(each > 0) || !known(cpu[i])) continue;
    seconds += each;
    used += each * cpu[i] / 100;
    ++samples;
  }
  if (static_cast<double>(samples) < kEnoughSamples) return role.resource("cpu_percent").mean / 100;
  return used / seconds;
}

bool in_step(const RunRecord& run) {
  const std::string mode = run.summary().text("mode");
  return run.all_reduce() || (mode.empty() ? run.setting("mode") : mode) != "async";
}

SlowOne slow_one(const RunRecord& run, const RunFacts& facts) {
  constexpr double kSlow = 1.25;
  const std::vector<OwnTime> times = own_times(run, facts);
  if (times.size() < 2) return {};
  const auto slowest = std::max_element(times.begin(), times.end(),
                                        [](const OwnTime& a, const OwnTime& b) { return a.seconds < b.seconds; });
  std::vector<double> others;
  std::vector<double> others_data;
  for (auto it = times.begin(); it != times.end(); ++it) {
    if (it == slowest) continue;
    others.push_back(it->seconds);
    others_data.push_back(it->data);
  }
  const double middle = median(others);
  if (!(middle > 0) || slowest->seconds < kSlow * middle) return {};
  const double more_data = slowest->data - median(others_data);
  const bool data = more_data > (slowest->seconds - middle) / 2;
  return {slowest->role, slowest->seconds / middle, slowest->seconds, middle, data};
}

Evidence share_evidence(std::string what, double share) { return {std::move(what), share, share_text(share)}; }

Evidence time_evidence(std::string what, double seconds) { return {std::move(what), seconds, time_text(seconds)}; }

}  // namespace lockstep::records
