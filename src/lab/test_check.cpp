#include "lab/test_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "base/suggest.h"
#include "lab/fields.h"
#include "lab/results.h"

namespace lockstep::lab {
namespace {

/// A test at the scales that have it.
struct Asked {
  const FindingTest* test = nullptr;
  const std::string* finding = nullptr;
  std::vector<const Experiment*> at;
};

/// Returns the runs of all scales that have the test, one list for each.
using Runs = std::vector<std::vector<RunResult>>;

std::vector<Asked> asked(const std::vector<Experiment>& scales) {
  std::vector<Asked> all;
  for (const Experiment& scale : scales) {
    for (const FindingSpec& finding : scale.report.findings) {
      if (!finding.not_judged.empty()) continue;
      for (const FindingTest& test : finding.tests) {
        const auto known = std::find_if(all.begin(), all.end(), [&](const Asked& each) {
          return each.test->line == test.line && each.test->column == test.column;
        });
        Asked& one = known == all.end() ? all.emplace_back(Asked{&test, &finding.name, {}}) : *known;
        one.at.push_back(&scale);
      }
    }
  }
  return all;
}

Runs runs_of(const Asked& asked) {
  Runs runs;
  for (const Experiment* scale : asked.at) {
    std::vector<RunResult>& here = runs.emplace_back();
    for (const Group& group : scale->groups) {
      for (const RunPlan& plan : group.runs) here.emplace_back().plan = plan;
    }
  }
  return runs;
}

/// Returns the values of a field in the runs that pass the filter, at the scale with the most of them.
std::set<std::string> values_of(const Runs& runs, const Filter& filter, const std::string& field) {
  std::set<std::string> most;
  for (const auto& scale : runs) {
    std::set<std::string> values;
    for (const RunResult& run : scale) {
      if (passes(run, filter)) values.insert(given_or_default(run, field));
    }
    if (values.size() > most.size()) most = std::move(values);
  }
  return most;
}

class TestCheck {
 public:
  TestCheck(const Reader& reader, const Asked& asked) : reader_(reader), asked_(asked), runs_(runs_of(asked)) {}

  /// Refuses to ask whether measured values are equal: two never are, so the answer is known.
  void check_limit() const {
    const FindingTest& test = *asked_.test;
    const FieldDef* field = find_field(test.field);
    if (test.kind != TestKind::spread || test.within > 0 || field == nullptr || field->varies != Varies::time) return;
    refuse(fmt::format("within: 0 asks whether values are equal, and no two measured values of {} are; give a limit",
                       test.field));
  }

  void check() const {
    const FindingTest& test = *asked_.test;
    // Roles of hosts are known once a run is done.
    for (const auto& scale : runs_) {
      if (std::any_of(scale.begin(), scale.end(), [](const RunResult& run) { return !run.plan.cluster.hosts.empty(); }))
        return;
    }
    check_side(test.first);
    const bool sides = test.kind == TestKind::compare || test.kind == TestKind::ratio || test.kind == TestKind::curve;
    if (sides) check_side(test.second);
    const bool along = test.kind == TestKind::trend || test.kind == TestKind::slope;
    const bool extreme = test.kind == TestKind::most || test.kind == TestKind::least;
    if ((along || extreme) && !of_part(test.over)) check_over(extreme);
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    YamlNode place;
    place.line = asked_.test->line;
    place.column = asked_.test->column;
    reader_.fail(place, fmt::format("finding {}: {}", *asked_.finding, why));
  }

  [[nodiscard]] bool any(const Filter& filter) const {
    return std::any_of(runs_.begin(), runs_.end(), [&](const auto& scale) {
      return std::any_of(scale.begin(), scale.end(), [&](const RunResult& run) { return passes(run, filter); });
    });
  }

  void check_side(const Filter& filter) const {
    if (any(filter)) return;
    for (const auto& [field, wanted] : filter.where) {
      if (any({filter.groups, {{field, wanted}}})) continue;
      const std::set<std::string> values = values_of(runs_, {filter.groups, {}}, field);
      refuse(fmt::format("no run{} has {} '{}'; there are '{}'",
                         filter.groups.empty() ? "" : fmt::format(" of {}", fmt::join(filter.groups, ", ")), field,
                         base::shown(fmt::format("{}", fmt::join(wanted, "' or '"))), fmt::join(values, "', '")));
    }
    refuse("no run is what one side of the test asks for");
  }

  void check_over(bool extreme) const {
    const FindingTest& test = *asked_.test;
    const std::set<std::string> values = values_of(runs_, test.first, test.over);
    if (values.size() < 2) {
      refuse(fmt::format("the test needs runs that differ in {}", test.over));
    }
    if (extreme && !values.contains(test.is)) {
      refuse(fmt::format("is: no run has {} '{}'; there are '{}'", test.over, base::shown(test.is),
                         fmt::join(values, "', '")));
    }
    if (test.kind != TestKind::slope) return;
    for (const std::string& value : values) {
      double number = 0;
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
      if (error != std::errc() || end != value.data() + value.size() || !(number > 0))
        refuse(fmt::format("a slope needs numbers above 0 in {}, not '{}'", test.over, base::shown(value)));
    }
  }

  const Reader& reader_;
  const Asked& asked_;
  Runs runs_;
};

}  // namespace

void check_limits(const Reader& reader, const std::vector<Experiment>& scales) {
  for (const Asked& each : asked(scales)) TestCheck(reader, each).check_limit();
}

void check_tests(const Reader& reader, const std::vector<Experiment>& scales) {
  for (const Asked& each : asked(scales)) TestCheck(reader, each).check();
}

}  // namespace lockstep::lab
