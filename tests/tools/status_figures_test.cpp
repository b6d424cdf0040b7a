// Figures of a role's status lines.
#include "display/status_figures.h"

#include <gtest/gtest.h>

namespace lockstep::tools {
namespace {

/// Two workers whose steps are updates of both: 64 examples each.
TEST(StatusSteps, RatesOfWorkersAddUpToTheClusters) {
  train::StepEvent step;
  step.examples = 128;
  step.own_examples = 64;
  step.correct = 96;
  step.loss = 0.5;
  display::StatusSteps steps;
  steps.start(10);
  for (int i = 0; i < 10; ++i) steps.add(step);
  const display::StatusFigures first = steps.take(12);
  EXPECT_EQ(2 * first.examples_per_s, 10 * 128 / 2.0);
  EXPECT_EQ(first.means.examples, 1280U);
  EXPECT_EQ(first.means.accuracy(), 0.75);
  step.loss = 1.5;
  steps.add(step);
  const display::StatusFigures second = steps.take(13);
  EXPECT_EQ(second.examples_per_s, 64.0) << "since the last call";
  EXPECT_EQ(second.means.loss(), 1.5);
}

}  // namespace
}  // namespace lockstep::tools
