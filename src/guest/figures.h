// Figures of a program that is not ours, from what it prints, from CSV files or from TensorBoard's event files. Points
// of losses and accuracies become the curves of a run; all other figures are single values, the last that was seen.
// Plain values, and an OutputReader for one thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "records/statistics.h"

namespace lockstep::guest {

/// Where a figure comes from.
struct FigureSource {
  enum class Kind : uint8_t {
    output,       ///< a regular expression; its first group, or the whole match, is the number
    csv,          ///< a column of a CSV file
    events,       ///< a scalar of event files, over their steps
    epoch_events  ///< the same if the steps are epochs, counted from 0, as Keras does
  };
  std::string figure;  ///< "accuracy"; "step" and "epoch" place the others
  Kind kind = Kind::output;
  std::string where;  ///< the expression, or the file or folder
  std::string name;   ///< column or tag

  /// As parse_source takes it, without the figure.
  [[nodiscard]] std::string text() const;
};

/// Parses "FIGURE=SOURCE". SOURCE is output:EXPRESSION, csv:FILE#COLUMN, events:FOLDER#TAG or epoch-events:FOLDER#TAG;
/// an EXPRESSION is RE2's. Throws UsageError.
FigureSource parse_source(std::string_view text);

struct Point {
  std::string figure;
  double value = records::kUnknown;
  double seconds = records::kUnknown;  ///< since the program began
  double step = records::kUnknown;
  double epoch = records::kUnknown;
};
using Points = std::vector<Point>;

inline constexpr size_t kMostPoints = 1'000'000;

/// Finds figures in the lines that a program prints. Throws UsageError for an invalid expression.
class OutputReader {
 public:
  explicit OutputReader(const std::vector<FigureSource>& sources);
  ~OutputReader();
  OutputReader(const OutputReader&) = delete;
  OutputReader& operator=(const OutputReader&) = delete;

  void read(const std::string& line, double seconds);
  [[nodiscard]] const Points& points() const { return points_; }

 private:
  struct Pattern;
  std::vector<Pattern> patterns_;
  Points points_;
  double step_ = records::kUnknown;
  double epoch_ = records::kUnknown;
};

/// Reads the figures of files after the program has ended. `began`: seconds since 1970. Throws DataError, IoError.
Points read_files(const std::vector<FigureSource>& sources, double began);

/// A line of evals.csv or steps.csv.
struct CurveRow {
  double step = records::kUnknown;
  double epoch = records::kUnknown;
  double seconds = records::kUnknown;
  double loss = records::kUnknown;
  double accuracy = records::kUnknown;
};

struct Figures {
  std::vector<CurveRow> evals;           ///< loss and accuracy
  std::vector<CurveRow> steps;           ///< train_loss and train_accuracy
  std::map<std::string, double> values;  ///< the last value of each figure
};

/// Joins points of the same step or epoch, or, where neither is known, of the same number.
Figures join(const Points& points);

/// Returns the figures for which there is no point.
std::vector<std::string> missing(const std::vector<FigureSource>& sources, const Points& points);

}  // namespace lockstep::guest
