#include "display/status_figures.h"

#include <algorithm>

namespace lockstep::display {

void StatusSteps::start(double seconds) {
  *this = {};
  since_ = seconds;
}

StatusFigures StatusSteps::take(double seconds) {
  const double span = std::max(seconds - since_, 1e-9);
  StatusFigures figures;
  figures.examples_per_s = static_cast<double>(own_examples_) / span;
  figures.wait_share = std::min(waited_ / span, 1.0);
  figures.staleness = staleness_ / static_cast<double>(std::max<uint64_t>(steps_, 1));
  figures.means = means_;
  figures.phases = phases_.take();
  start(seconds);
  return figures;
}

}  // namespace lockstep::display
