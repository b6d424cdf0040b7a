#include "role/role_observer.h"

#include <cmath>

#include "base/file.h"
#include "run/summary.h"

namespace lockstep::role {
namespace {

using observe::Metric;

run::ObservedRole with(run::ObservedRole role, std::optional<uint64_t> first_step,
                       observe::MetricsServer::Figures figures) {
  role.first_step = first_step;
  role.figures = std::move(figures);
  return role;
}

void write(const run::RoleSummary& summary, const run::ObservedRole& role) {
  try {
    base::write_whole_file(role.folder + "/summary.json", run::to_json(summary));
  } catch (const std::exception& error) {
    if (role.log) role.log("warning", error.what());
  }
}

}  // namespace

ServerObserver::ServerObserver(const settings::Settings& settings, run::ObservedRole role, const ps::Server& server)
    : server_(server),
      observation_(settings, with(std::move(role), server.progress().version, [this] { return figures(); })),
      phases_(observation_.role().folder, static_cast<uint64_t>(settings.log_every), [this](const std::string& text) {
        if (observation_.role().log) observation_.role().log("warning", text);
      }) {}

run::ServerTotals ServerObserver::totals(const ps::Server::Progress& progress,
                                         const std::vector<base::DurationRecord>& stages) const {
  return {progress.version, progress.pushes, clock_.seconds(), stages};
}

void ServerObserver::look(const ps::Server::Progress& progress) {
  observation_.at_step(progress.version);
  if (progress.initialised) phases_.look(totals(progress, server_.times()));
}

ServerObserver::~ServerObserver() {
  const ps::Server::Progress progress = server_.progress();
  run::RoleSummary summary;
  summary.role = observation_.role().name;
  summary.seconds = clock_.seconds();
  summary.counts = {{"updates", progress.version}, {"pushes", progress.pushes}};
  summary.phases = server_.times();
  if (progress.initialised) phases_.end(totals(progress, summary.phases));
  summary.resources = observation_.stop();
  write(summary, observation_.role());
}

std::vector<Metric> ServerObserver::figures() const {
  const ps::Server::Progress progress = server_.progress();
  std::vector<Metric> all{
      {"step",
       Metric::Kind::gauge,
       "parameter updates so far, by all workers",
       {},
       static_cast<double>(progress.version)},
      {"pushes_total", Metric::Kind::counter, "gradients received", {}, static_cast<double>(progress.pushes)},
      {"workers", Metric::Kind::gauge, "active workers", {}, static_cast<double>(progress.active)}};
  for (const base::DurationRecord& phase : server_.times()) {
    all.push_back({"phase_seconds_total",
                   Metric::Kind::counter,
                   "seconds of this process per stage",
                   {{"phase", std::string(phase.name)}},
                   phase.seconds});
  }
  return all;
}

EvaluatorObserver::EvaluatorObserver(const settings::Settings& settings, run::ObservedRole role)
    : observation_(settings, with(std::move(role), {}, [this] { return figures(); })) {}

void EvaluatorObserver::on_eval(const train::EvalEvent& event) {
  evaluations_.fetch_add(1, std::memory_order_relaxed);
  step_.store(event.step, std::memory_order_relaxed);
  loss_.store(event.loss, std::memory_order_relaxed);
  accuracy_.store(event.accuracy, std::memory_order_relaxed);
  if (evaluations_.load(std::memory_order_relaxed) == 1) observation_.go_on_from(event.step > 0 ? event.step - 1 : 0);
  observation_.at_step(event.step);
  observe::SummaryWriter* summaries = observation_.summaries();
  if (summaries == nullptr) return;
  summaries->scalar("eval/loss", event.step, event.loss);
  if (!std::isnan(event.accuracy)) summaries->scalar("eval/accuracy", event.step, event.accuracy);
  summaries->flush();
}

EvaluatorObserver::~EvaluatorObserver() {
  run::RoleSummary summary;
  summary.role = observation_.role().name;
  summary.seconds = clock_.seconds();
  summary.counts = {{"evaluations", evaluations_.load()}, {"test_step", step_.load()}};
  summary.resources = observation_.stop();
  write(summary, observation_.role());
}

std::vector<Metric> EvaluatorObserver::figures() const {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  std::vector<Metric> all{{"step",
                           Metric::Kind::gauge,
                           "step of the latest checkpoint evaluated",
                           {},
                           static_cast<double>(step_.load(kRelaxed))},
                          {"evaluations_total",
                           Metric::Kind::counter,
                           "checkpoints evaluated",
                           {},
                           static_cast<double>(evaluations_.load(kRelaxed))}};
  if (!std::isnan(loss_.load(kRelaxed))) {
    all.push_back({"eval_loss", Metric::Kind::gauge, "loss of the latest evaluation", {}, loss_.load(kRelaxed)});
  }
  if (!std::isnan(accuracy_.load(kRelaxed))) {
    all.push_back(
        {"eval_accuracy", Metric::Kind::gauge, "accuracy of the latest evaluation", {}, accuracy_.load(kRelaxed)});
  }
  return all;
}

}  // namespace lockstep::role
