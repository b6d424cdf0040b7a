#include "display/phase_shares.h"

#include <algorithm>
#include <numeric>

#include "terminal/text.h"

namespace lockstep::display {
namespace {

constexpr size_t kShown = 3;
constexpr double kWorthAWord = 0.02;

}  // namespace

train::PhaseSeconds PhaseShares::take() {
  const double all = std::accumulate(since_.begin(), since_.end(), 0.0);
  train::PhaseSeconds shares = {};
  for (size_t i = 0; i < shares.size() && all > 0; ++i) shares[i] = since_[i] / all;
  since_ = {};
  return shares;
}

std::string largest_phases(const train::PhaseSeconds& phases) {
  std::array<size_t, train::kPhases> order{};
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return phases[a] > phases[b]; });
  std::string words;
  for (size_t i = 0; i < kShown && phases[order[i]] >= kWorthAWord; ++i) {
    words += words.empty() ? "" : ", ";
    words += std::string(text(static_cast<train::Phase>(order[i]))) + " " + terminal::percent(phases[order[i]], 0);
  }
  return words;
}

}  // namespace lockstep::display
