#include "report/anomalies.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "records/statistics.h"
#include "report/figures.h"

namespace lockstep::report {
namespace {

using records::known;
using Rows = std::vector<size_t>;
using Texts = std::vector<std::string>;

constexpr size_t kLeastRows = 3;         ///< equal rows that are more than chance
constexpr size_t kLeastDigits = 3;       ///< digits of a figure that is not equal by rounding
constexpr double kMuchWork = 10;         ///< growth of the work that a time must show
constexpr double kSameTime = 1.1;        ///< ratio of times that are the same
constexpr double kAlone = 1.5;           ///< ratio to both neighbours of a figure that stands alone
constexpr double kNeighbours = 1.3;      ///< largest ratio of neighbours that agree
constexpr double kWholeWorkers = 0.05;   ///< distance from a whole number of workers
constexpr double kNodeTraffic = 1.5;     ///< ratio of a node's received and sent bytes
constexpr double kClusterTraffic = 1.1;  ///< ratio of all nodes' received and sent bytes
constexpr double kLeastTraffic = 1e6;    ///< bytes per second below which traffic is not an exchange of parameters
constexpr size_t kMostNamed = 4;

/// Fields of the two directions of the same traffic.
struct Traffic {
  const char* received;
  const char* sent;
  bool peak = false;  ///< peaks of nodes do not add up
};
constexpr std::array<Traffic, 3> kTraffic{{{"network_received", "network_sent"},
                                           {"network_received_max", "network_sent_max", true},
                                           {"ps_received", "ps_sent"}}};

double ratio(double a, double b) { return std::max(a, b) / std::min(a, b); }

/// Counts digits without leading zeros: 3 in "0.0120".
size_t digits_of(const std::string& text) {
  size_t digits = 0;
  for (const char c : text) {
    if (c >= '0' && c <= '9' && (digits > 0 || c != '0')) ++digits;
  }
  return digits;
}

std::string some_of(Texts all) {
  const size_t more = all.size() > kMostNamed ? all.size() - kMostNamed : 0;
  all.resize(all.size() - more);
  return fmt::format("{}{}", fmt::join(all, "; "), more > 0 ? fmt::format("; {} more", more) : "");
}

class Examination {
 public:
  explicit Examination(const ReportedTable& table) : table_(table) {
    for (const std::string& key : table.keys) {
      if (figures().has(key)) keys_.push_back(key);
    }
    for (const std::string& column : table.columns) {
      if (figures().has(column) && lab::find_field(column) != nullptr) columns_.push_back(column);
    }
  }

  Texts run() {
    impossible();
    twice();
    idle();
    identical();
    unaffected();
    alone();
    rates();
    traffic();
    return std::move(found_);
  }

 private:
  [[nodiscard]] const Reported& figures() const { return table_.figures; }
  [[nodiscard]] bool has(const char* field) const {
    return std::find(columns_.begin(), columns_.end(), field) != columns_.end();
  }
  [[nodiscard]] bool has_key(const char* field) const {
    return std::find(keys_.begin(), keys_.end(), field) != keys_.end();
  }
  [[nodiscard]] double number(size_t row, const std::string& field) const { return figures().number(row, field); }
  [[nodiscard]] std::string shown(size_t row, const std::string& field) const {
    return figure_text(number(row, field), unit_of(field));
  }

  /// Returns "deploy single, batch 5"; without one of the keys, if it is given.
  [[nodiscard]] std::string name(size_t row, const std::string& without = "") const {
    Fields fields;
    Key key;
    for (const std::string& field : keys_) {
      if (field == without) continue;
      const std::string value = figures().text(row, field);
      const bool number_alone = lab::of_part(field) && known(number_of(value));
      fields.push_back(field);
      key.push_back(number_alone ? field + " " + value : value);
    }
    return describe(fields, key);
  }

  /// Groups the rows that differ only in one key, sorted by its number where it is one.
  [[nodiscard]] std::vector<Rows> along(const std::string& key) const {
    std::map<Key, Rows> groups;
    for (size_t row = 0; row < figures().size(); ++row) {
      Key rest;
      for (const std::string& field : keys_) {
        if (field != key) rest.push_back(figures().text(row, field));
      }
      groups[rest].push_back(row);
    }
    std::vector<Rows> result;
    for (auto& [rest, rows] : groups) {
      std::stable_sort(rows.begin(), rows.end(), [&](size_t a, size_t b) {
        return number_of(figures().text(a, key)) < number_of(figures().text(b, key));
      });
      result.push_back(std::move(rows));
    }
    std::sort(result.begin(), result.end());
    return result;
  }

  /// Returns "8 rows of deploy single, batch 1 to 600".
  [[nodiscard]] std::string rows_text(const Rows& rows, const std::string& key) const {
    const std::string rest = name(rows.front(), key);
    return fmt::format("{} rows of {}{}{} {} to {}", rows.size(), rest, rest.empty() ? "" : ", ", field_title(key),
                       figures().text(rows.front(), key), figures().text(rows.back(), key));
  }

  [[nodiscard]] bool differ(const Rows& rows, const std::string& key) const {
    for (size_t i = 1; i < rows.size(); ++i) {
      if (same_value(figures().text(rows[i - 1], key), figures().text(rows[i], key))) return false;
    }
    return true;
  }

  void impossible() {
    constexpr std::array<std::string_view, 3> kOfNode{"cpu_percent", "cpu_max", "ps_node_cpu_percent"};
    Texts texts;
    for (const std::string& field : columns_) {
      const bool of_node = std::find(kOfNode.begin(), kOfNode.end(), field) != kOfNode.end();
      const double most = unit_of(field) == lab::Unit::share ? 1 : of_node ? 100 : INFINITY;
      for (size_t row = 0; row < figures().size(); ++row) {
        const double value = number(row, field);
        const bool timeless = value == 0 && unit_of(field) == lab::Unit::seconds;
        if (!known(value) || (value >= 0 && value <= most * (1 + 1e-9) && !timeless)) continue;
        texts.push_back(fmt::format("{} {} ({})", field_title(field), figures().text(row, field), name(row)));
      }
    }
    if (!texts.empty()) found_.push_back(fmt::format("Impossible figures: {}.", some_of(texts)));
  }

  /// Finds the same case with different figures. If most cases appear twice, the table just does not name what differs.
  void twice() {
    std::map<std::string, Rows> by_name;
    for (size_t row = 0; row < figures().size(); ++row) by_name[name(row)].push_back(row);
    if (2 * (figures().size() - by_name.size()) > by_name.size()) return;
    Texts texts;
    for (const auto& [what, rows] : by_name) {
      Texts differences;
      for (const std::string& field : columns_) {
        const double first = number(rows.front(), field);
        const double last = number(rows.back(), field);
        if (!known(first) || !known(last) || first == last) continue;
        differences.push_back(
            fmt::format("{} {} and {}", field_title(field), shown(rows.front(), field), shown(rows.back(), field)));
      }
      if (!differences.empty()) texts.push_back(fmt::format("{}: {}", what, fmt::join(differences, ", ")));
    }
    if (!texts.empty()) found_.push_back(fmt::format("The same case is there twice: {}.", some_of(texts)));
  }

  void idle() {
    if (!has("iterations")) return;
    Texts texts;
    for (size_t row = 0; row < figures().size(); ++row) {
      const bool other =
          (has("seconds") && number(row, "seconds") > 0) || (has("accuracy") && number(row, "accuracy") > 0);
      if (number(row, "iterations") == 0 && other) texts.push_back(name(row));
    }
    if (!texts.empty()) found_.push_back(fmt::format("Results without an iteration: {}.", some_of(texts)));
  }

  /// Returns whether a figure that should differ is the same in all rows.
  [[nodiscard]] bool same_in_all(const Rows& rows, const std::string& field) const {
    const double first = number(rows.front(), field);
    for (const size_t row : rows) {
      if (number(row, field) != first || digits_of(figures().text(row, field)) < kLeastDigits) return false;
    }
    const std::optional<bool> here = table_.same_here ? table_.same_here(field, rows) : std::nullopt;
    const lab::FieldDef* def = lab::find_field(field);
    return here ? !*here : def != nullptr && def->varies != lab::Varies::nothing;
  }

  /// Workers of one run may agree, repeats of a row may not.
  void identical() {
    for (const std::string& key : keys_) {
      if (lab::of_part(key)) continue;
      for (const Rows& rows : along(key)) {
        if (rows.size() < kLeastRows || !differ(rows, key)) continue;
        Texts texts;
        for (const std::string& field : columns_) {
          if (same_in_all(rows, field)) texts.push_back(field_title(field) + " (" + shown(rows.front(), field) + ")");
        }
        if (texts.empty()) continue;
        found_.push_back(fmt::format("The same {} in all {}: was {} applied?", fmt::join(texts, " and "),
                                     rows_text(rows, key), field_title(key)));
      }
    }
  }

  [[nodiscard]] double step_time(size_t row) const {
    if (has("step_seconds")) return number(row, "step_seconds");
    const char* count = has("iterations") ? "iterations" : "steps";
    if (!has("seconds") || !has(count) || !(number(row, count) > 0)) return records::kUnknown;
    return number(row, "seconds") / number(row, count);
  }

  void unaffected() {
    if (!has_key("batch")) return;
    for (const Rows& rows : along("batch")) {
      if (rows.size() < kLeastRows || !differ(rows, "batch")) continue;
      const double work =
          number_of(figures().text(rows.back(), "batch")) / number_of(figures().text(rows.front(), "batch"));
      std::vector<double> times;
      for (const size_t row : rows) times.push_back(step_time(row));
      if (!(work >= kMuchWork) || !std::all_of(times.begin(), times.end(), known)) continue;
      const auto [least, most] = std::minmax_element(times.begin(), times.end());
      if (!(*least > 0) || *most / *least > kSameTime) continue;
      found_.push_back(
          fmt::format("An iteration takes {} to {} in all {}, with up to {:.0f} times the arithmetic: other costs hide "
                      "it, or the batch was not applied.",
                      figure_text(*least, lab::Unit::seconds), figure_text(*most, lab::Unit::seconds),
                      rows_text(rows, "batch"), work));
    }
  }

  /// Finds a time or a use of resources that is far from both neighbours, which agree with each other.
  void alone() {
    Texts texts;
    for (const std::string& key : keys_) {
      if (lab::of_part(key)) continue;
      for (const Rows& rows : along(key)) {
        if (!differ(rows, key) || !known(number_of(figures().text(rows.front(), key)))) continue;
        for (const std::string& field : columns_) {
          for (size_t i = 1; i + 1 < rows.size(); ++i) add_alone(rows, i, field, texts);
        }
      }
    }
    if (!texts.empty()) found_.push_back(fmt::format("Far from both neighbours, which agree: {}.", some_of(texts)));
  }

  void add_alone(const Rows& rows, size_t i, const std::string& field, Texts& texts) const {
    const lab::FieldDef* def = lab::find_field(field);
    if (def == nullptr || def->varies != lab::Varies::time) return;
    const double before = number(rows[i - 1], field);
    const double after = number(rows[i + 1], field);
    const double value = number(rows[i], field);
    if (!(before > 0) || !(after > 0) || !(value > 0) || ratio(before, after) > kNeighbours) return;
    if (value < kAlone * std::max(before, after) && value > std::min(before, after) / kAlone) return;
    texts.push_back(fmt::format("{} {} ({}), beside {} and {}", field_title(field), shown(rows[i], field),
                                name(rows[i]), shown(rows[i - 1], field), shown(rows[i + 1], field)));
  }

  /// Compares examples per second times the time of a step with the examples of a step.
  void rates() {
    if (!has("examples_per_second") || !has("step_seconds") || !has_key("batch")) return;
    Texts texts;
    for (size_t row = 0; row < figures().size(); ++row) {
      const double batch = number_of(figures().text(row, "batch"));
      const double workers = number(row, "examples_per_second") * number(row, "step_seconds") / batch;
      const double whole = std::max(1.0, std::round(workers));
      if (!known(workers) || std::abs(workers - whole) <= kWholeWorkers * whole) continue;
      texts.push_back(fmt::format("{}: {:.2f}", name(row), workers));
    }
    if (texts.empty()) return;
    found_.push_back(
        fmt::format("Rate times time of a step is not a whole number of workers times the batch: {}.", some_of(texts)));
  }

  /// Compares bytes received and sent: equal over all nodes of a cluster, and alike on each node, since gradients and
  /// parameters are of the same size.
  void traffic() {
    const std::string worker = has_key("worker") ? "worker" : has_key("role") ? "role" : has_key("node") ? "node" : "";
    Texts texts;
    for (const Traffic& pair : kTraffic) {
      if (!has(pair.received) || !has(pair.sent) || (pair.peak && !worker.empty())) continue;
      for (const Rows& rows : along(worker)) {
        const std::vector<Rows> parts = worker.empty() ? singles(rows) : std::vector<Rows>{rows};
        for (const Rows& part : parts) add_traffic(part, worker, pair, texts);
      }
    }
    if (texts.empty()) return;
    const char* what = worker.empty() ? "A node receives and sends far from the same, though gradients and parameters "
                                        "are of one size"
                                      : "The nodes together do not receive what they send";
    found_.push_back(fmt::format("{}: {}.", what, some_of(texts)));
  }

  static std::vector<Rows> singles(const Rows& rows) {
    std::vector<Rows> parts;
    for (const size_t row : rows) parts.push_back({row});
    return parts;
  }

  void add_traffic(const Rows& rows, const std::string& worker, const Traffic& pair, Texts& texts) const {
    double received = 0;
    double sent = 0;
    for (const size_t row : rows) {
      received += number(row, pair.received);
      sent += number(row, pair.sent);
    }
    if (!known(received) || !known(sent) || !(std::min(received, sent) > 0)) return;
    const double allowed = worker.empty() ? kNodeTraffic : kClusterTraffic;
    if (std::max(received, sent) < kLeastTraffic || ratio(received, sent) <= allowed) return;
    texts.push_back(fmt::format("{} received, {} sent ({})", figure_text(received, lab::Unit::bytes_per_second),
                                figure_text(sent, lab::Unit::bytes_per_second), name(rows.front(), worker)));
  }

  const ReportedTable& table_;
  Fields keys_;
  Fields columns_;
  Texts found_;
};

}  // namespace

std::vector<std::string> anomalies(const ReportedTable& table) {
  return table.figures.empty() ? std::vector<std::string>{} : Examination(table).run();
}

}  // namespace lockstep::report
