#include "base/suggest.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace lockstep::base {
namespace {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitution = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitution});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest(std::string_view name, std::span<const std::string> allowed) {
  std::string best;
  size_t best_distance = std::max<size_t>(2, name.size() / 3) + 1;
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
