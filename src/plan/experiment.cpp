#include <fmt/format.h>

#include <cmath>

#include "lockstep/error.h"
#include "plan/output.h"

namespace lockstep::plan {
namespace {

std::string rate_setting(double bytes_per_second) {
  const double bits = bytes_per_second * 8;
  if (bits >= 1e9 && std::fmod(bits, 1e9) < 1) return fmt::format("{:.0f}gbit", bits / 1e9);
  return bits >= 1e6 ? fmt::format("{:.6g}mbit", bits / 1e6) : fmt::format("{:.6g}kbit", bits / 1e3);
}

std::string emulate_setting(const Plan& plan, const Row& row) {
  std::string text = fmt::format("cores: {:g}", plan.choices.cores);
  if (row.rate < predict::kUnlimited && row.nodes > 1) text += ", rate: " + rate_setting(row.rate);
  if (row.delay > 0 && row.nodes > 1) text += fmt::format(", delay: {:g}us", row.delay * 1e6);
  for (const auto& [node, cores] : plan.choices.other_cores) {
    if (node <= row.nodes) text += fmt::format(", node{}: {{cores: {:g}}}", node, cores);
  }
  return "{" + text + "}";
}

std::string case_of(const Plan& plan, const Row& row, size_t number) {
  std::string text = fmt::format("  - {{label: {}, batch: {:.0f}", number + 1, row.batch);
  if (row.strategy != predict::Strategy::local) {
    text += fmt::format(", workers: {}, strategy: {}", row.workers,
                        row.strategy == predict::Strategy::servers ? "ps" : "allreduce");
    if (row.strategy == predict::Strategy::servers) {
      text += fmt::format(", ps: {}, mode: {}", row.servers, row.sync ? "sync" : "async");
      if (row.training.aggregate > 0) text += fmt::format(", aggregate: {}", row.training.aggregate);
    }
  }
  return text + fmt::format(", cluster: {{emulate: {}}}, tags: {{predicted: {:.6g}, planned_nodes: {}}}}}\n",
                            emulate_setting(plan, row), row.examples.value, row.nodes);
}

}  // namespace

std::string experiment_yaml(const Plan& plan, double cores) {
  std::string text = fmt::format(
      "# Checks a plan of {}: each choice on emulated nodes of this machine. The tag `predicted` is the examples per\n"
      "# second of the plan.\n"
      "name: plan-check\ntitle: A plan, checked\nrepeats: 1\nbase: {{model: {}",
      plan.basis.name, plan.basis.model);
  if (!plan.basis.dataset.empty()) text += ", dataset: " + plan.basis.dataset;
  text += ", epochs: 0, seconds: 10}\ncases:\n";
  size_t fitting = 0;
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    const Row& row = plan.rows[i];
    double needed = 0;
    for (const predict::Node& node : row.training.nodes) needed += node.cores;
    if (needed > cores + 1e-9) {
      text += fmt::format("  # not on {:g} cores: {} nodes, {}, batch {:.0f}\n", cores, row.nodes, way_text(row),
                          row.batch);
      continue;
    }
    ++fitting;
    text += case_of(plan, row, i);
  }
  if (fitting == 0) {
    throw UsageError(
        fmt::format("plan: none of the choices fits the {:g} cores of this machine as emulated nodes, so no "
                    "experiment can check them; take a smaller --node cores=X",
                    cores));
  }
  return text +
         "report:\n  tables:\n    - {name: check, title: Predicted and measured, rows: [label, predicted], columns: "
         "[examples_per_second, step_seconds]}\n";
}

}  // namespace lockstep::plan
