#include "run/summary.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/host.h"
#include "base/json.h"
#include "base/memory.h"
#include "lockstep/error.h"
#include "settings/machine.h"

namespace lockstep::run {
namespace {

using nlohmann::ordered_json;

ordered_json number(double value) { return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr); }

std::string time_text(int64_t seconds) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(seconds)));
}

void add_evals(ordered_json& json, const train::Outcome& outcome) {
  json["test_loss"] = outcome.last_eval ? number(outcome.last_eval->loss) : ordered_json(nullptr);
  json["test_accuracy"] = outcome.last_eval ? number(outcome.last_eval->accuracy) : ordered_json(nullptr);
  json["test_step"] = outcome.last_eval ? ordered_json(outcome.last_eval->step) : ordered_json(nullptr);
  json["best_accuracy"] = outcome.best_eval ? number(outcome.best_eval->accuracy) : ordered_json(nullptr);
  json["best_loss"] = outcome.best_eval ? number(outcome.best_eval->loss) : ordered_json(nullptr);
  json["best_step"] = outcome.best_eval ? ordered_json(outcome.best_eval->step) : ordered_json(nullptr);
}

ordered_json worker_json(const train::WorkerRecord& worker, bool all_reduce) {
  ordered_json json;
  json["role"] = worker.role;
  json["iterations"] = worker.iterations;
  json["examples"] = worker.examples;
  json["updates"] = worker.updates;
  if (!all_reduce) json["dropped"] = worker.dropped;
  json["restarts"] = worker.restarts;
  json["finished_seconds"] = number(worker.finished_seconds);
  json["wait_share"] = number(worker.wait_share);
  if (all_reduce) {
    json["load_seconds"] = number(worker.load_seconds);
    json["compute_seconds"] = number(worker.compute_seconds);
  }
  if (!all_reduce) {
    json["staleness_mean"] = number(worker.staleness_mean);
    json["staleness_max"] = worker.staleness_max;
    json["staleness"] = worker.staleness;
  }
  json["loss"] = number(worker.loss);
  json["accuracy"] = number(worker.accuracy);
  return json;
}

ordered_json communication_json(const settings::Settings& settings, const train::CommunicationRecord& record) {
  ordered_json json;
  json["engine"] = record.engine;
  if (record.group > 0) json["group"] = record.group;
  json["groups"] = record.groups;
  json["buckets"] = record.buckets;
  json["bucket_bytes"] = record.bucket_bytes;
  if (settings.top_k > 0) json["top_k"] = settings.top_k;
  json["bytes_per_step"] = number(record.bytes_per_step);
  json["transfer_seconds"] = number(record.transfer_seconds);
  json["wait_seconds"] = number(record.wait_seconds);
  json["overlapped"] = number(record.overlapped);
  return json;
}

void add_cluster(ordered_json& json, const settings::Settings& settings, const train::Outcome& outcome) {
  if (outcome.workers.empty()) return;
  const bool all_reduce = !outcome.communication.engine.empty();
  json["strategy"] = all_reduce ? "allreduce" : "ps";
  json["mode"] = value_text(settings, "mode");
  if (settings.max_staleness >= 0) json["max_staleness"] = settings.max_staleness;
  json["reduce"] = value_text(settings, "reduce");
  json["wire"] = value_text(settings, "wire");
  if (!all_reduce) json["durability"] = value_text(settings, "durability");
  if (all_reduce) json["communication"] = communication_json(settings, outcome.communication);
  if (!outcome.stragglers.empty()) json["stragglers"] = outcome.stragglers;
  for (const train::WorkerRecord& worker : outcome.workers) json["workers"].push_back(worker_json(worker, all_reduce));
}

ordered_json resources_json(const observe::ResourceSummary& resources) {
  ordered_json json;
  json["every"] = resources.every;
  json["samples"] = resources.samples;
  // Cores of the machine: this process may be bound to some of them.
  if (const std::optional<base::OwnNode> node = base::own_node()) {
    json["cores"] = node->cores;
  } else {
    json["cores"] = ::sysconf(_SC_NPROCESSORS_ONLN);
  }
  json["memory_bytes"] = base::machine_memory();
  for (const observe::ColumnSummary& column : resources.columns) {
    json[column.name] = {{"mean", number(column.mean)},
                         {"p50", number(column.p50)},
                         {"p95", number(column.p95)},
                         {"max", number(column.max)}};
  }
  return json;
}

void add_observed(ordered_json& json, const Summary& summary) {
  if (!summary.role.empty()) json["role"] = summary.role;
  json["host"] = base::host_name();
  for (const train::PhaseRecord& phase : summary.outcome.phases) {
    json["phases"].push_back({{"phase", name(phase.phase)},
                              {"count", phase.count},
                              {"seconds", number(phase.seconds)},
                              {"share", number(phase.share)},
                              {"mean", number(phase.mean)},
                              {"p50", number(phase.p50)},
                              {"p95", number(phase.p95)},
                              {"p99", number(phase.p99)}});
  }
  if (summary.resources) json["resources"] = resources_json(*summary.resources);
}

train::EvalEvent to_event(const checkpoint::EvalRecord& record, const std::optional<checkpoint::EvalRecord>& best) {
  train::EvalEvent event;
  event.step = record.step;
  event.epoch = record.epoch;
  event.loss = record.loss;
  event.accuracy = record.accuracy;
  event.examples = record.examples;
  event.best = best == record;
  return event;
}

}  // namespace

train::Outcome outcome_of(const checkpoint::TrainingState& state, train::StopReason reason, bool has_accuracy) {
  train::Outcome outcome;
  outcome.reason = reason;
  outcome.steps = state.step;
  outcome.epochs = state.epochs;
  outcome.examples = state.examples;
  outcome.seconds = state.seconds;
  outcome.aside_seconds = state.aside_seconds;
  const double computing = state.seconds - state.aside_seconds;
  outcome.examples_per_second = computing > 0 ? static_cast<double>(state.examples) / computing : 0;
  const auto seen = static_cast<double>(state.epoch_examples);
  outcome.train_loss = seen > 0 ? state.epoch_loss_sum / seen : state.epoch_loss;
  outcome.train_accuracy = seen > 0 ? static_cast<double>(state.epoch_correct) / seen : state.epoch_accuracy;
  if (state.last_eval) outcome.last_eval = to_event(*state.last_eval, state.best_eval);
  if (state.best_eval) outcome.best_eval = to_event(*state.best_eval, state.best_eval);
  if (has_accuracy) return outcome;
  outcome.train_accuracy = std::numeric_limits<double>::quiet_NaN();
  for (auto* eval : {&outcome.last_eval, &outcome.best_eval}) {
    if (*eval) (*eval)->accuracy = outcome.train_accuracy;
  }
  return outcome;
}

void take_recorded_memory(const std::string& summary_file, train::Outcome& outcome) {
  constexpr uint64_t kMostSummaryBytes = 64'000'000;
  outcome.peak_memory_bytes = 0;
  try {
    const std::vector<uint8_t> bytes = base::read_file(summary_file, kMostSummaryBytes);
    const auto summary = base::parse_json_or_discard<ordered_json>(std::string(bytes.begin(), bytes.end()));
    if (!summary.is_object()) return;
    const auto peak = summary.find("peak_memory_bytes");
    if (peak != summary.end() && peak->is_number_unsigned()) outcome.peak_memory_bytes = peak->get<uint64_t>();
    const auto role = summary.find("role");
    if (role != summary.end() && role->is_string()) outcome.role = role->get<std::string>();
  } catch (const Error&) {
    return;  // the memory stays unknown
  }
}

std::string to_json(const Summary& summary) {
  const train::Outcome& outcome = summary.outcome;
  const settings::Settings& settings = summary.settings;
  ordered_json json;
  json["model"] = settings.model;
  json["dataset"] = settings.dataset;
  json["parameters"] = outcome.parameters;
  json["optimizer"] = value_text(settings, "optimizer");
  json["learning_rate"] = settings.lr;
  json["batch"] = settings.batch;
  json["accumulate"] = settings.accumulate;
  json["seed"] = settings.seed;
  json["steps"] = outcome.steps;
  json["epochs"] = outcome.epochs;
  json["examples"] = outcome.examples;
  json["seconds"] = number(outcome.seconds);
  json["aside_seconds"] = number(outcome.aside_seconds);
  json["examples_per_second"] = number(outcome.examples_per_second);
  json["train_loss"] = number(outcome.train_loss);
  json["train_accuracy"] = number(outcome.train_accuracy);
  add_evals(json, outcome);
  add_cluster(json, settings, outcome);
  add_observed(json, summary);
  json["stop_reason"] = text(outcome.reason);
  if (!summary.error.empty()) json["error"] = summary.error;
  json["peak_memory_bytes"] = outcome.peak_memory_bytes;
  json["backend"] = settings.backend;
  json["threads"] = summary.threads;
  json["wait_policy"] = summary.wait_policy;
  json["isa"] = summary.isa;
  json["version"] = settings::program_version();
  json["started"] = time_text(summary.started);
  json["ended"] = time_text(summary.ended);
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::string to_json(const RoleSummary& summary) {
  ordered_json json;
  json["role"] = summary.role;
  json["host"] = base::host_name();
  json["seconds"] = number(summary.seconds);
  for (const auto& [name, count] : summary.counts) json[name] = count;
  double all = 0;
  for (const base::DurationRecord& phase : summary.phases) all += phase.seconds;
  for (const base::DurationRecord& phase : summary.phases) {
    if (phase.count == 0) continue;
    json["phases"].push_back({{"phase", phase.name},
                              {"count", phase.count},
                              {"seconds", number(phase.seconds)},
                              {"share", number(phase.seconds / all)},
                              {"mean", number(phase.mean)},
                              {"p50", number(phase.p50)},
                              {"p95", number(phase.p95)},
                              {"p99", number(phase.p99)}});
  }
  if (summary.resources) json["resources"] = resources_json(*summary.resources);
  json["version"] = settings::program_version();
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace lockstep::run
