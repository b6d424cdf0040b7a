#include "train/training_observer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "lockstep/error.h"
#include "settings/configuration.h"
#include "train/pace.h"

namespace lockstep::train {
namespace {

using observe::Metric;

/// The columns of the HParams tab. TensorBoard takes them from one run for all, so every run has the same.
constexpr std::array<std::string_view, 32> kCompared{
    "model",     "options",  "dataset", "batch",    "accumulate", "global-batch", "optimizer", "lr",
    "momentum",  "schedule", "epochs",  "steps",    "clip-norm",  "weight-decay", "seed",      "threads",
    "precision", "workers",  "ps",      "strategy", "replicas",   "collective",   "mode",      "max-staleness",
    "aggregate", "reduce",   "apply",   "wire",     "top-k",      "layout",       "bucket-mb", "placement"};

observe::HParam as_hparam(const settings::Settings& settings, const settings::SettingDef& def) {
  if (const auto* flag = std::get_if<bool settings::Settings::*>(&def.member)) return settings.**flag;
  const std::string text = settings::value_text(settings, def);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return number;
  return text;
}

}  // namespace

void TrainingObserver::Since::add(const PhaseSeconds& more) {
  for (size_t i = 0; i < kPhases; ++i) phases[i] += more[i];
}

TrainingObserver::TrainingObserver(const settings::Settings& settings, run::ObservedRole role, Shown shown)
    : settings_(settings),
      shown_(std::move(shown)),
      summary_every_(run::summary_every(settings)),
      observation_(settings, with_figures(std::move(role))) {
  for (size_t i = 0; i < kPhases; ++i) phase_tags_[i] = fmt::format("phases/{}", name(static_cast<Phase>(i)));
  for (const graph::ParameterInfo& info : shown_.parameters->infos()) {
    tags_.emplace_back("weights/" + info.name, "gradients/" + info.name);
  }
}

void TrainingObserver::warn(const std::string& text) const {
  if (observation_.role().log) observation_.role().log("warning", text);
}

run::ObservedRole TrainingObserver::with_figures(run::ObservedRole role) {
  role.figures = [this] { return figures(); };
  return role;
}

void TrainingObserver::on_start(const StartEvent& event) {
  has_accuracy_ = event.has_accuracy;
  summary_ = line_ = {};
  summary_.seconds = line_.seconds = event.clock->seconds();
  summary_.aside = line_.aside = event.first_aside_seconds;
  observe::SummaryWriter* summaries = observation_.summaries();
  if (summaries == nullptr) return;
  if (shown_.graph) summaries->graph(shown_.graph(), shown_.devices);
  if (shown_.compares_runs) summaries->hparams(hparams());
  summaries->text("config", event.first_step, "```yaml\n" + settings::to_yaml(settings_) + "```\n");
  summaries->flush();
}

void TrainingObserver::begin_with(const StepEvent& event) {
  const uint64_t before = event.step - 1;
  if (begun_ || !observation_.role().first_step) observation_.go_on_from(before);
  summary_.step = line_.step = histograms_step_ = before;
  summary_.examples = line_.examples = event.examples_total - static_cast<uint64_t>(event.examples);
  open_phases_file(before);
  begun_ = true;
}

void TrainingObserver::open_phases_file(uint64_t step) {
  if (settings_.log_every == 0) return;
  std::string header = "step,seconds,steps";
  for (size_t i = 0; i < kPhases; ++i) header += fmt::format(",{}", name(static_cast<Phase>(i)));
  try {
    if (phases_file_) phases_file_->flush();
    phases_file_ = base::CsvFile::resume(observation_.role().folder + "/phases.csv", header, step);
  } catch (const Error& error) {
    phases_file_.reset();
    warn(error.what());
  }
}

void TrainingObserver::on_step(const StepEvent& event) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  if (!begun_ || event.step <= live_.step.load(kRelaxed)) begin_with(event);
  phases_.add(event.phases);
  for (Since* since : {&summary_, &line_}) {
    ++since->own_steps;
    since->waited += event.wait_seconds;
    since->add(event.phases);
  }
  observation_.at_step(event.step);
  live_.step.store(event.step, kRelaxed);
  live_.own_steps.fetch_add(1, kRelaxed);
  live_.examples.store(event.examples_total, kRelaxed);
  live_.staleness.store(event.staleness, kRelaxed);
  live_.epoch.store(event.epoch, kRelaxed);
  live_.loss.store(event.loss, kRelaxed);
  live_.learning_rate.store(event.learning_rate, kRelaxed);
  for (size_t i = 0; i < kPhases; ++i) live_.phases[i].store(phases_.seconds(static_cast<Phase>(i)), kRelaxed);
  if (shows() && (event.step == 1 || due(summary_every_, summary_.step, event.step))) summarise(event);
  if (due(static_cast<uint64_t>(settings_.histograms_every), histograms_step_, event.step)) {
    write_histograms(event.step);
  }
  if (due(static_cast<uint64_t>(settings_.log_every), line_.step, event.step)) {
    const double now = event.clock->seconds();
    add_phases_line(event.step, now);
    line_ = {event.step, 0, event.examples_total, now, event.aside_seconds, 0, {}};
  }
}

double TrainingObserver::rate(const StepEvent& event, double now) const {
  // While one asynchronous worker evaluates or saves, the others continue.
  const double aside = settings_.mode == settings::Mode::async ? 0 : event.aside_seconds - summary_.aside;
  const double passed = now - summary_.seconds - aside;
  return passed > 0 ? static_cast<double>(event.examples_total - summary_.examples) / passed : 0;
}

void TrainingObserver::summarise(const StepEvent& event) {
  observe::SummaryWriter& to = *observation_.summaries();
  const double now = event.clock->seconds();
  to.scalar("train/loss", event.step, event.loss);
  if (has_accuracy_) to.scalar("train/accuracy", event.step, event.accuracy());
  to.scalar("train/learning_rate", event.step, event.learning_rate);
  to.scalar("train/staleness", event.step, static_cast<double>(event.staleness));
  if (!std::isnan(event.gradient_norm)) to.scalar("train/gradient_norm", event.step, event.gradient_norm);
  to.scalar("train/examples_per_second", event.step, rate(event, now));
  const double all = std::accumulate(summary_.phases.begin(), summary_.phases.end(), 0.0);
  if (all > 0) to.scalar("train/wait_share", event.step, std::min(summary_.waited / all, 1.0));
  for (size_t i = 0; i < kPhases && all > 0; ++i) {
    if (live_.phases[i].load(std::memory_order_relaxed) > 0) {
      to.scalar(phase_tags_[i], event.step, summary_.phases[i] / all);
    }
  }
  summary_ = {event.step, 0, event.examples_total, now, event.aside_seconds, 0, {}};
}

void TrainingObserver::add_phases_line(uint64_t step, double seconds) {
  if (!phases_file_) return;
  std::array<char, 512> text{};
  size_t size = fmt::format_to_n(text.data(), text.size(), "{},{:.6f},{}", step, seconds, line_.own_steps).size;
  for (const double phase : line_.phases) {
    size += fmt::format_to_n(text.data() + size, text.size() - size, ",{:.9g}", phase).size;
  }
  try {
    phases_file_->add({text.data(), std::min(size, text.size())});
    if (seconds - flushed_ < 1) return;
    flushed_ = seconds;
    phases_file_->flush();
  } catch (const Error& error) {
    phases_file_.reset();
    warn(error.what());
  }
}

void TrainingObserver::add_end(const PhaseSeconds& phases) {
  phases_.add_aside(phases);
  line_.add(phases);
}

void TrainingObserver::write_histograms(uint64_t step) {
  histograms_step_ = step;
  observe::SummaryWriter* summaries = observation_.summaries();
  if (summaries == nullptr) return;
  const std::vector<graph::ParameterInfo>& infos = shown_.parameters->infos();
  for (size_t i = 0; i < infos.size(); ++i) {
    const size_t count = infos[i].count();
    summaries->histogram(tags_[i].first, step, shown_.parameters->values().subspan(infos[i].offset, count));
    summaries->histogram(tags_[i].second, step, shown_.parameters->gradients().subspan(infos[i].offset, count));
  }
}

void TrainingObserver::on_eval(const EvalEvent& event) {
  live_.eval_loss.store(event.loss, std::memory_order_relaxed);
  live_.eval_accuracy.store(event.accuracy, std::memory_order_relaxed);
  observe::SummaryWriter* summaries = observation_.summaries();
  if (summaries == nullptr) return;
  summaries->scalar("eval/loss", event.step, event.loss);
  if (!std::isnan(event.accuracy)) summaries->scalar("eval/accuracy", event.step, event.accuracy);
  if (settings_.histograms_every == 0 && pace_.due(event.step, event.seconds)) write_histograms(event.step);
  summaries->flush();
}

void TrainingObserver::on_checkpoint(const CheckpointEvent& event) {
  if (observation_.summaries() != nullptr) observation_.summaries()->checkpoint(event.step, event.file);
}

void TrainingObserver::on_end(const Outcome& outcome) {
  if (observe::SummaryWriter* summaries = observation_.summaries()) {
    if (pace_.skipped(outcome.steps)) write_histograms(outcome.steps);
    const bool broken = outcome.reason == StopReason::error || outcome.reason == StopReason::not_finite;
    const bool over = outcome.reason != StopReason::interrupted;  // an interrupted run will probably be resumed
    if (shown_.compares_runs && over) summaries->ended(!broken);
    summaries->flush();
  }
  add_phases_line(outcome.steps, outcome.seconds);
  if (!phases_file_) return;
  try {
    phases_file_->flush();
  } catch (const Error& error) {
    phases_file_.reset();
    warn(error.what());
  }
}

void TrainingObserver::group(uint64_t number, uint64_t step) {
  if (observation_.summaries() == nullptr) return;
  observation_.summaries()->scalar("cluster/group", step, static_cast<double>(number));
}

void TrainingObserver::show(const std::string& name, uint64_t step, const EncodedPicture& picture) {
  if (!shows()) return;
  observation_.summaries()->image("pictures/" + name, step, picture.png, picture.height, picture.width,
                                  picture.channels);
}

observe::HParams TrainingObserver::hparams() const {
  observe::HParams hparams;
  for (const std::string_view name : kCompared) {
    hparams.values[std::string(name)] = as_hparam(settings_, *settings::find_setting(name));
  }
  hparams.metrics = {"eval/accuracy", "eval/loss", "train/loss", "train/examples_per_second"};
  hparams.group = std::filesystem::path(observation_.role().folder).filename().string();
  return hparams;
}

std::vector<Metric> TrainingObserver::figures() const {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  const auto number = [](const auto& value) { return static_cast<double>(value.load(kRelaxed)); };
  std::vector<Metric> all{
      {"step", Metric::Kind::gauge, "parameter updates so far, by all workers", {}, number(live_.step)},
      {"steps_total", Metric::Kind::counter, "steps of this process", {}, number(live_.own_steps)},
      {"examples", Metric::Kind::gauge, "examples in the updates so far, by all workers", {}, number(live_.examples)},
      {"epoch", Metric::Kind::gauge, "epoch of the latest step, from 1", {}, number(live_.epoch)},
      {"loss", Metric::Kind::gauge, "loss of the latest step", {}, number(live_.loss)},
      {"learning_rate", Metric::Kind::gauge, "learning rate of the latest step", {}, number(live_.learning_rate)},
      {"staleness",
       Metric::Kind::gauge,
       "updates by others since the parameters were received",
       {},
       number(live_.staleness)}};
  for (size_t i = 0; i < kPhases; ++i) {
    all.push_back({"phase_seconds_total",
                   Metric::Kind::counter,
                   "seconds of this process per phase",
                   {{"phase", std::string(name(static_cast<Phase>(i)))}},
                   number(live_.phases[i])});
  }
  if (!std::isnan(number(live_.eval_loss))) {
    all.push_back({"eval_loss", Metric::Kind::gauge, "loss of the latest evaluation", {}, number(live_.eval_loss)});
  }
  if (!std::isnan(number(live_.eval_accuracy))) {
    all.push_back(
        {"eval_accuracy", Metric::Kind::gauge, "accuracy of the latest evaluation", {}, number(live_.eval_accuracy)});
  }
  return all;
}

}  // namespace lockstep::train
