#include "base/suggest.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace lockstep::base {
namespace {

constexpr size_t kSwap = 1;  ///< cost of two letters in the wrong order, the most common slip
constexpr size_t kEdit = 2;  ///< cost of a letter too many, a missing one, or another one

/// Returns the cost of the cheapest changes that turn `a` into `b`.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before;  // the row before `above`
  std::vector<size_t> above;
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j * kEdit;
  for (size_t i = 1; i <= a.size(); ++i) {
    before = std::exchange(above, row);
    row[0] = i * kEdit;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t other = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : kEdit);
      row[j] = std::min({above[j] + kEdit, row[j - 1] + kEdit, other});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + kSwap);
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest(std::string_view name, std::span<const std::string> allowed) {
  std::string best;
  size_t best_distance = std::max<size_t>(2, name.size() / 3) * kEdit + 1;
  for (const std::string& candidate : allowed) {
    const size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string hint(std::string_view name, std::span<const std::string> allowed) {
  if (const std::string best = nearest(name, allowed); !best.empty()) return " (did you mean '" + best + "'?)";
  std::string list;
  for (const std::string& candidate : allowed) list += (list.empty() ? "" : ", ") + candidate;
  return " (allowed: " + list + ")";
}

}  // namespace lockstep::base
