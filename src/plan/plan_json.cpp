#include <cmath>
#include <nlohmann/json.hpp>

#include "plan/output.h"

namespace lockstep::plan {
namespace {

using nlohmann::ordered_json;

ordered_json number_or_null(double value) { return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr); }

ordered_json interval_json(const Interval& interval) {
  return {{"low", number_or_null(interval.low)},
          {"value", number_or_null(interval.value)},
          {"high", number_or_null(interval.high)}};
}

ordered_json row_json(const Row& row) {
  const char* strategy = row.strategy == predict::Strategy::local        ? "local"
                         : row.strategy == predict::Strategy::all_reduce ? "allreduce"
                                                                         : "ps";
  return {{"nodes", row.nodes},
          {"workers", row.workers},
          {"ps", row.servers},
          {"strategy", strategy},
          {"mode", row.sync ? "sync" : "async"},
          {"batch", row.batch},
          {"rate_bits", number_or_null(row.rate * 8)},
          {"delay", row.delay},
          {"step", interval_json(row.step)},
          {"examples_per_second", interval_json(row.examples)},
          {"speed_up", row.speed_up},
          {"efficiency", row.efficiency},
          {"network_load", row.network},
          {"server_load", row.server},
          {"memory_bytes", number_or_null(row.memory)},
          {"fits", row.fits},
          {"seconds", interval_json(row.seconds)},
          {"cost", number_or_null(row.money)},
          {"limit", row.limit}};
}

ordered_json place(const std::optional<size_t>& row) { return row ? ordered_json(*row) : ordered_json(nullptr); }

}  // namespace

std::string to_json(const Plan& plan) {
  ordered_json json{{"of", plan.basis.name},
                    {"model", plan.basis.model},
                    {"node_cores", plan.choices.cores},
                    {"rows", ordered_json::array()},
                    {"fastest", place(plan.fastest)},
                    {"cheapest", place(plan.cheapest)},
                    {"knee", place(plan.knee)},
                    {"slower_machines", number_or_null(plan.slower_machines)},
                    {"notes", plan.notes}};
  for (const Row& row : plan.rows) json["rows"].push_back(row_json(row));
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace lockstep::plan
