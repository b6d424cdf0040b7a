#include "guest/figures.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <tuple>

#include "base/yaml_tree.h"
#include "guest/csv_columns.h"
#include "lockstep/error.h"
#include "observe/tensorboard/event_reader.h"

namespace lockstep::guest {
namespace {

using Kind = FigureSource::Kind;
using records::known;

constexpr size_t kLongestExpression = 1000;
constexpr int64_t kExpressionMemory = 4 << 20;
constexpr std::array<std::pair<std::string_view, Kind>, 4> kKinds{
    {{"output", Kind::output}, {"csv", Kind::csv}, {"events", Kind::events}, {"epoch-events", Kind::epoch_events}}};

std::unique_ptr<re2::RE2> compile(const std::string& expression, const std::string& figure) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kExpressionMemory);
  auto compiled = std::make_unique<re2::RE2>(expression, options);
  if (!compiled->ok()) {
    throw UsageError(fmt::format("figure {}: '{}' is not a regular expression: {}", figure, base::shown(expression),
                                 base::shown(compiled->error())));
  }
  return compiled;
}

std::optional<double> finite_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

bool is_place(const std::string& figure) { return figure == "step" || figure == "epoch"; }

void check_room(const Points& points) {
  if (points.size() < kMostPoints) return;
  throw DataError(fmt::format("has more than {} figures; let it report them less often", kMostPoints));
}

/// Reads the figures of one CSV file; columns for step, epoch and seconds place the others.
void read_csv(const std::string& file, const std::vector<FigureSource>& sources, Points& points) {
  std::vector<std::string> names;
  for (const FigureSource& source : sources) names.push_back(source.name);
  const std::vector<std::vector<double>> columns = read_columns(file, names);
  const auto place = [&](std::string_view figure, size_t row) {
    for (size_t i = 0; i < sources.size(); ++i) {
      if (sources[i].figure == figure) return columns[i][row];
    }
    return records::kUnknown;
  };
  for (size_t row = 0; row < columns.front().size(); ++row) {
    for (size_t i = 0; i < sources.size(); ++i) {
      if (!known(columns[i][row])) continue;
      check_room(points);
      points.push_back(
          {sources[i].figure, columns[i][row], place("seconds", row), place("step", row), place("epoch", row)});
    }
  }
}

void read_events(const FigureSource& source, double began, Points& points) {
  for (const observe::Scalar& scalar : observe::read_scalars_of(source.where, source.name).scalars) {
    if (!std::isfinite(scalar.value)) continue;
    check_room(points);
    Point point{source.figure, scalar.value, scalar.time - began};
    (source.kind == Kind::events ? point.step : point.epoch) =
        static_cast<double>(scalar.step) + (source.kind == Kind::events ? 0 : 1);
    points.push_back(std::move(point));
  }
}

/// Joins the points of one curve's loss and accuracy, in the order of their places.
std::vector<CurveRow> rows_of(const Points& points, const std::string& loss, const std::string& accuracy) {
  const auto wanted = [&](const Point& p) { return p.figure == loss || p.figure == accuracy; };
  const auto all_have = [&](double Point::*place) {
    return std::all_of(points.begin(), points.end(), [&](const Point& p) { return !wanted(p) || known(p.*place); });
  };
  const bool by_step = all_have(&Point::step);
  const bool by_epoch = all_have(&Point::epoch);
  std::map<std::string, double> count;
  std::map<double, CurveRow> rows;
  for (const Point& point : points) {
    if (!wanted(point)) continue;
    const double number = ++count[point.figure];
    CurveRow& row = rows[by_step ? point.step : by_epoch ? point.epoch : number];
    if (known(point.step)) row.step = point.step;
    if (known(point.epoch)) row.epoch = point.epoch;
    if (known(point.seconds)) row.seconds = point.seconds;
    (point.figure == loss ? row.loss : row.accuracy) = point.value;
  }
  std::vector<CurveRow> result;
  for (const auto& [place, row] : rows) result.push_back(row);
  return result;
}

}  // namespace

std::string FigureSource::text() const {
  const auto* const found = std::find_if(kKinds.begin(), kKinds.end(), [&](const auto& k) { return k.second == kind; });
  return fmt::format("{}:{}{}{}", found->first, where, kind == Kind::output ? "" : "#", name);
}

FigureSource parse_source(std::string_view text) {
  const size_t equals = text.find('=');
  const size_t colon = text.find(':', equals == std::string_view::npos ? 0 : equals);
  const auto fail = [&](const std::string& what) {
    throw UsageError(fmt::format("figure '{}': {}", base::shown(text), what));
  };
  constexpr const char* kForm =
      "it takes FIGURE=SOURCE with output:EXPRESSION, csv:FILE#COLUMN, events:FOLDER#TAG or epoch-events:FOLDER#TAG";
  if (equals == std::string_view::npos || equals == 0 || colon == std::string_view::npos) fail(kForm);
  const std::string_view kind = text.substr(equals + 1, colon - equals - 1);
  const auto* const found = std::find_if(kKinds.begin(), kKinds.end(), [&](const auto& k) { return k.first == kind; });
  if (found == kKinds.end()) fail(kForm);
  FigureSource source{std::string(text.substr(0, equals)), found->second, std::string(text.substr(colon + 1)), ""};
  if (source.kind == Kind::output) {
    if (source.where.empty() || source.where.size() > kLongestExpression) {
      fail(fmt::format("a regular expression has 1 to {} characters", kLongestExpression));
    }
    (void)compile(source.where, source.figure);
    return source;
  }
  const size_t hash = source.where.rfind('#');
  if (hash == std::string::npos || hash == 0 || hash + 1 == source.where.size()) fail(kForm);
  source.name = source.where.substr(hash + 1);
  source.where.resize(hash);
  return source;
}

struct OutputReader::Pattern {
  std::string figure;
  std::unique_ptr<re2::RE2> expression;
};

OutputReader::OutputReader(const std::vector<FigureSource>& sources) {
  for (const FigureSource& source : sources) {
    if (source.kind == Kind::output) patterns_.push_back({source.figure, compile(source.where, source.figure)});
  }
  // Steps and epochs of a line place its other figures.
  std::stable_partition(patterns_.begin(), patterns_.end(), [](const Pattern& p) { return is_place(p.figure); });
}

OutputReader::~OutputReader() = default;

void OutputReader::read(const std::string& line, double seconds) {
  for (const Pattern& pattern : patterns_) {
    std::array<re2::StringPiece, 2> groups;
    const int count = std::min(2, pattern.expression->NumberOfCapturingGroups() + 1);
    if (!pattern.expression->Match(line, 0, line.size(), re2::RE2::UNANCHORED, groups.data(), count)) continue;
    const re2::StringPiece& found = groups[static_cast<size_t>(count - 1)];
    const std::optional<double> value = finite_number({found.data(), found.size()});
    if (!value) continue;
    if (pattern.figure == "step") step_ = *value;
    if (pattern.figure == "epoch") epoch_ = *value;
    if (points_.size() < kMostPoints) points_.push_back({pattern.figure, *value, seconds, step_, epoch_});
  }
}

Points read_files(const std::vector<FigureSource>& sources, double began) {
  Points points;
  std::map<std::string, std::vector<FigureSource>> by_file;
  for (const FigureSource& source : sources) {
    if (source.kind == Kind::csv) by_file[source.where].push_back(source);
    if (source.kind == Kind::events || source.kind == Kind::epoch_events) read_events(source, began, points);
  }
  for (const auto& [file, wanted] : by_file) read_csv(file, wanted, points);
  return points;
}

Figures join(const Points& points) {
  Figures figures;
  figures.evals = rows_of(points, "loss", "accuracy");
  figures.steps = rows_of(points, "train_loss", "train_accuracy");
  for (const Point& point : points) {
    figures.values[point.figure] = point.value;
    for (const auto& [name, place] : {std::pair("step", point.step), std::pair("epoch", point.epoch)}) {
      if (known(place)) figures.values[name] = std::max(place, figures.values.emplace(name, place).first->second);
    }
  }
  return figures;
}

std::vector<std::string> missing(const std::vector<FigureSource>& sources, const Points& points) {
  std::vector<std::string> names;
  for (const FigureSource& source : sources) {
    const bool there =
        std::any_of(points.begin(), points.end(), [&](const Point& p) { return p.figure == source.figure; });
    if (!there) names.push_back(source.figure);
  }
  return names;
}

}  // namespace lockstep::guest
