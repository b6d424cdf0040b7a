// Parts of an array that each thread of a loop computes. A later loop over the same elements may follow it, so that a
// thread finds in its own cache what it wrote before. Plain values.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::base {

/// Runs of elements at equal distances: the rows of a rectangle in a matrix.
struct Runs {
  int64_t first = 0;   ///< element at which the first run begins
  int64_t count = 0;   ///< number of runs
  int64_t length = 0;  ///< elements of a run
  int64_t stride = 0;  ///< elements from the begin of a run to the begin of the next

  [[nodiscard]] int64_t elements() const { return count * length; }
  friend bool operator==(const Runs&, const Runs&) = default;
};

/// Returns columns [column, column + columns) of rows [row, row + rows) of a matrix of that width; whole rows are one
/// run.
inline Runs rectangle(int64_t row, int64_t rows, int64_t column, int64_t columns, int64_t width) {
  if (rows <= 0 || columns <= 0) return {};
  if (columns == width) return {row * width, 1, rows * width, rows * width};
  return {row * width + column, rows, columns, width};
}

/// One part per thread; empty if unknown.
using Shares = std::vector<Runs>;

}  // namespace lockstep::base
