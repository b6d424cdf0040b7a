// Values of a RunRecord that describe the run as a whole.
#include <algorithm>
#include <charconv>

#include "records/run_record.h"

namespace lockstep::records {
namespace {

double first_known(std::initializer_list<double> values) {
  const auto* const found = std::find_if(values.begin(), values.end(), known);
  return found == values.end() ? kUnknown : *found;
}

/// Returns a time or a count, or unknown if it is impossible: damaged logs have such values.
double sane(double value) { return value >= 0 && value < 1e15 ? value : kUnknown; }

}  // namespace

const RoleRecord* RunRecord::role(std::string_view wanted) const {
  const auto found = std::find_if(roles.begin(), roles.end(), [&](const RoleRecord& r) { return r.role == wanted; });
  return found == roles.end() ? nullptr : &*found;
}

const WorkerRow* RunRecord::worker(std::string_view wanted) const {
  const auto& rows = summary().workers;
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const WorkerRow& r) { return r.role == wanted; });
  return found == rows.end() ? nullptr : &*found;
}

std::string RunRecord::setting(std::string_view key) const {
  const auto found = std::find_if(settings.begin(), settings.end(), [&](const auto& s) { return s.first == key; });
  return found == settings.end() ? "" : found->second;
}

bool RunRecord::has_setting(std::string_view key) const {
  return std::any_of(settings.begin(), settings.end(), [&](const auto& s) { return s.first == key; });
}

double RunRecord::number_setting(std::string_view key) const {
  const std::string text = setting(key);
  double value = kUnknown;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : kUnknown;
}

size_t RunRecord::workers() const {
  const auto training = std::count_if(roles.begin(), roles.end(), [](const RoleRecord& r) { return r.trains(); });
  const double replicas = number_setting("replicas");
  const size_t within = replicas > 1 && replicas < 1e6 ? static_cast<size_t>(replicas) : 0;
  return std::max({summary().workers.size(), planned_workers, static_cast<size_t>(training), within});
}

size_t RunRecord::servers() const {
  const auto serving = std::count_if(roles.begin(), roles.end(), [](const RoleRecord& r) { return r.serves(); });
  return std::max(planned_servers, static_cast<size_t>(serving));
}

bool RunRecord::failed() const {
  const std::string reason = summary().text("stop_reason");
  return reason == "error" || reason == "non-finite loss";
}

bool RunRecord::all_reduce() const {
  if (!summary().text("strategy").empty()) return summary().text("strategy") == "allreduce";
  return workers() > 1 && servers() == 0;
}

bool RunRecord::in_process() const { return number_setting("replicas") > 1 && roles.size() == 1; }

bool RunRecord::has_evaluator() const {
  return setting("evaluator") == "true" ||
         std::any_of(roles.begin(), roles.end(), [](const RoleRecord& r) { return r.role.starts_with("evaluator:"); });
}

double RunRecord::threads() const {
  const double set = number_setting("threads");  // 0: one per core
  return first_known({summary().number("threads"), set > 0 ? set : kUnknown});
}

const CsvTable& RunRecord::evals() const {
  const auto found = std::find_if(roles.begin(), roles.end(), [](const RoleRecord& r) { return !r.evals.empty(); });
  // With an evaluator the chief evaluates only at the end, if at all.
  const auto evaluator = std::find_if(roles.begin(), roles.end(), [](const RoleRecord& r) {
    return r.role.starts_with("evaluator:") && r.evals.column("step").size() > 1;
  });
  if (evaluator != roles.end()) return evaluator->evals;
  return found == roles.end() ? chief().evals : found->evals;
}

std::string RunRecord::model() const {
  const std::string text = summary().text("model");
  return text.empty() ? setting("model") : text;
}

std::string RunRecord::dataset() const {
  const std::string text = summary().text("dataset");
  return text.empty() ? setting("dataset") : text;
}

double RunRecord::steps() const { return first_known({summary().number("steps"), sane(chief().steps.last("step"))}); }

double RunRecord::examples() const {
  const double batch = number_setting("batch") * number_setting("accumulate");
  const bool sync = setting("mode") != "async";
  return first_known({summary().number("examples"), steps() * batch * (sync ? static_cast<double>(workers()) : 1)});
}

double RunRecord::seconds() const {
  return first_known({summary().number("seconds"), sane(chief().steps.last("seconds"))});
}

double RunRecord::examples_per_second() const {
  const std::span<const double> rates = chief().steps.column("examples_per_second");
  // The first line covers a single step, which also includes the program's preparations.
  return first_known(
      {summary().number("examples_per_second"), mean(rates.subspan(std::min<size_t>(rates.size(), 1))), mean(rates)});
}

double RunRecord::seconds_per_step() const {
  const double aside = summary().number("aside_seconds");
  const std::span<const double> each = chief().steps.column("seconds_per_step");
  return first_known({(summary().number("seconds") - (known(aside) ? aside : 0)) / summary().number("steps"),
                      mean(each.subspan(std::min<size_t>(each.size(), 1))), mean(each)});
}

double RunRecord::test_loss() const { return first_known({summary().number("test_loss"), evals().last("loss")}); }

double RunRecord::test_accuracy() const {
  return first_known({summary().number("test_accuracy"), evals().last("accuracy")});
}

double RunRecord::train_loss() const { return summary().number("train_loss"); }

}  // namespace lockstep::records
