// Compares the cost of a run with that of another: speed-up, efficiency, and the phases that took the lost time.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "records/format.h"
#include "records/why_facts.h"

namespace lockstep::records {
namespace {

/// Returns the seconds of workers' time per example, by phase.
std::vector<PhaseCost> costs(const Pace& now, const Pace& before) {
  struct Part {
    const char* name;
    double Pace::*member;
  };
  std::vector<PhaseCost> result;
  for (const Part& part :
       {Part{"data", &Pace::data}, Part{"forward", &Pace::forward}, Part{"backward", &Pace::backward},
        Part{"optimizer", &Pace::optimizer}, Part{"push", &Pace::push}, Part{"pull", &Pace::pull},
        Part{"transfer", &Pace::transfer}, Part{"others", &Pace::others}, Part{"evaluation", &Pace::evaluation},
        Part{"checkpoint", &Pace::checkpoint}, Part{"rest", &Pace::rest}}) {
    const PhaseCost cost{part.name, before.*part.member / before.examples, now.*part.member / now.examples};
    if (cost.before > 0 || cost.now > 0) result.push_back(cost);
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const PhaseCost& a, const PhaseCost& b) { return a.now - a.before > b.now - b.before; });
  return result;
}

/// Returns whether every worker recorded phases. Of replicas in one process only the first records them.
bool all_recorded(const RunRecord& run, const RunFacts& facts) {
  return (facts.workers.size() == run.workers() || (run.in_process() && !facts.workers.empty())) &&
         facts.all.examples > 0;
}

std::string workers_text(size_t count) { return fmt::format("{} worker{}", count, count == 1 ? "" : "s"); }

void say_where(const Comparison& result, std::vector<std::string>& sentences) {
  double lost = 0;
  double total_before = 0;
  double total = 0;
  for (const PhaseCost& cost : result.phases) {
    lost += std::max(0.0, cost.now - cost.before);
    total_before += cost.before;
    total += cost.now;
  }
  sentences.push_back(fmt::format("An example costs {} of worker time, against {} in the baseline.", time_text(total),
                                  time_text(total_before)));
  if (lost <= 0 || total <= total_before) return;
  std::string parts;
  for (const PhaseCost& cost : result.phases) {
    const double more = cost.now - cost.before;
    if (more < 0.05 * lost) break;
    parts +=
        fmt::format("{}{} {} (+{})", parts.empty() ? "" : ", ", cost.phase, share_text(more / lost), time_text(more));
  }
  sentences.push_back("The lost time went to: " + parts + ".");
}

}  // namespace

Comparison compare(const RunRecord& run, const RunRecord& baseline) {
  Comparison result;
  result.speed_up = run.examples_per_second() / baseline.examples_per_second();
  result.more_workers = static_cast<double>(run.workers()) / static_cast<double>(baseline.workers());
  result.efficiency = efficiency_of(run, baseline);
  if (known(result.speed_up)) {
    result.headline =
        fmt::format("{}: {} as fast as {} ({}), an efficiency of {} per {} ({}).", workers_text(run.workers()),
                    times_text(result.speed_up), baseline.name, workers_text(baseline.workers()),
                    share_text(result.efficiency.value), result.efficiency.unit, units_text(result.efficiency));
    result.sentences.push_back(fmt::format("{} examples/s against {}.", count_text(run.examples_per_second()),
                                           count_text(baseline.examples_per_second())));
  } else {
    result.headline = "One of the two runs did not record its throughput.";
  }
  const RunFacts now = facts_of(run);
  const RunFacts before = facts_of(baseline);
  if (all_recorded(run, now) && all_recorded(baseline, before)) {
    result.phases = costs(now.all, before.all);
    say_where(result, result.sentences);
  } else {
    result.sentences.emplace_back("The phases cannot be compared: some workers of the two runs recorded none.");
  }
  const double accuracy = run.test_accuracy() - baseline.test_accuracy();
  if (known(accuracy)) {
    result.sentences.push_back(fmt::format("Test accuracy is {:.2f} % against {:.2f} % ({:+.2f} points).",
                                           run.test_accuracy() * 100, baseline.test_accuracy() * 100, accuracy * 100));
  }
  if (run.model() != baseline.model() || run.dataset() != baseline.dataset()) {
    result.sentences.push_back(fmt::format("The two runs train different tasks: {} on {} against {} on {}.",
                                           run.model(), run.dataset(), baseline.model(), baseline.dataset()));
  }
  return result;
}

}  // namespace lockstep::records
