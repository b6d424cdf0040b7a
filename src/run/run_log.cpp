#include "run/run_log.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

namespace lockstep::run {
namespace {

constexpr double kFlushSeconds = 1;

base::CsvFile open_log(const std::string& path, std::string_view header, bool resumed, uint64_t step) {
  return resumed ? base::CsvFile::resume(path, header, step) : base::CsvFile::create(path, header);
}

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// An accuracy as a CSV field, empty if there is none; does not allocate.
class Accuracy {
 public:
  explicit Accuracy(double value) {
    if (!std::isnan(value)) size_ = fmt::format_to_n(text_.data(), text_.size(), "{:.6g}", value).size;
  }
  [[nodiscard]] std::string_view text() const { return {text_.data(), size_}; }

 private:
  std::array<char, 24> text_{};
  size_t size_ = 0;
};

/// Formats a line without allocating.
template <class... Args>
void add_line(base::CsvFile& file, fmt::format_string<Args...> format, Args&&... args) {
  std::array<char, 512> line{};
  const auto end = fmt::format_to_n(line.data(), line.size(), format, std::forward<Args>(args)...);
  file.add({line.data(), std::min(end.size, line.size())});
}

}  // namespace

RunLog::RunLog(const RunDirectory& run, uint64_t log_every, bool resumed, uint64_t step)
    : steps_(open_log(run.steps_file(), kStepsHeader, resumed, step)),
      evals_(open_log(run.evals_file(), kEvalsHeader, resumed, step)),
      log_every_(log_every) {}

RunLog::RunLog(const RunDirectory& run, uint64_t log_every, Kept kept)
    : steps_(open_log(run.steps_file(), kStepsHeader, true, kept.step)),
      evals_(open_log(run.evals_file(), kEvalsHeader, true, kept.evaluated)),
      log_every_(log_every) {}

void RunLog::go_back(uint64_t step, uint64_t examples) {
  flush();
  steps_ = base::CsvFile::resume(steps_.path(), kStepsHeader, step);
  evals_ = base::CsvFile::resume(evals_.path(), kEvalsHeader, step);
  last_step_ = step;
  last_examples_ = examples;
}

void RunLog::go_on_from(const Mark& mark) {
  last_step_ = mark.step;
  last_examples_ = mark.examples;
  last_seconds_ = mark.seconds;
  last_aside_ = mark.aside_seconds;
}

void RunLog::on_start(const train::StartEvent& event) {
  last_seconds_ = last_flush_ = event.clock->seconds();
  last_aside_ = event.first_aside_seconds;
  last_examples_ = event.first_examples;
  last_step_ = event.first_step;
  has_accuracy_ = event.has_accuracy;
}

void RunLog::on_step(const train::StepEvent& event) {
  const bool first = event.step == 1;  // so that a short run has a line, too
  // With several workers, their steps lie between this worker's.
  const bool due = log_every_ > 0 && event.step / log_every_ != last_step_ / log_every_;
  if (log_every_ == 0 || (!due && !first)) return;
  const double seconds = event.clock->seconds();
  const double passed = seconds - last_seconds_ - (event.aside_seconds - last_aside_);
  const double rate = passed > 0 ? static_cast<double>(event.examples_total - last_examples_) / passed : 0;
  const double per_step = passed / static_cast<double>(event.step - last_step_);
  add_line(steps_, "{},{},{:.6f},{},{},{},{:.1f},{:.6g}", event.step, event.epoch, seconds, event.loss,
           Accuracy(has_accuracy_ ? event.accuracy() : kNone).text(), event.learning_rate, rate, per_step);
  last_seconds_ = seconds;
  last_aside_ = event.aside_seconds;
  last_examples_ = event.examples_total;
  last_step_ = event.step;
  if (seconds - last_flush_ < kFlushSeconds) return;
  last_flush_ = seconds;
  steps_.flush();
}

void RunLog::on_eval(const train::EvalEvent& event) {
  add_line(evals_, "{},{},{:.6f},{},{},{},{:.6f},{}", event.step, event.epoch, event.seconds, event.loss,
           Accuracy(event.accuracy).text(), event.examples, event.eval_seconds, event.best ? 1 : 0);
  flush();
}

void RunLog::before_checkpoint() { flush(); }

void RunLog::on_end(const train::Outcome& /*outcome*/) { flush(); }

void RunLog::flush() {
  steps_.flush();
  evals_.flush();
}

}  // namespace lockstep::run
