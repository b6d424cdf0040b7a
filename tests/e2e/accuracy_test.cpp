// Short training on real data.
#include "e2e/accuracy.h"

namespace lockstep::testing {
namespace {

TEST_F(Accuracy, SoftmaxRegressionLearnsFashionMnist) {
  if (!has_fashion_mnist()) GTEST_SKIP() << "package dataset-fashion-mnist is not installed";
  EXPECT_GE(best({"train", "lr", "--dataset", "fashion-mnist", "--lr", "0.1", "--epochs", "2", "--quiet"}, "lr-1"),
            0.80);
}

TEST_F(Accuracy, LenetLearnsMnistOrElseFashionMnistInOneEpoch) {
  if (real_mnist().empty()) {
    if (!has_fashion_mnist()) GTEST_SKIP() << "package dataset-fashion-mnist is not installed";
    EXPECT_GE(best({"train", "lenet", "--dataset", "fashion-mnist", "--epochs", "1", "--quiet"}, "lenet-1"), 0.80);
    return;
  }
  EXPECT_GE(best({"train", "lenet", "--data", real_mnist(), "--lr", "0.002", "--epochs", "1", "--quiet"}, "lenet-1"),
            0.975);
  EXPECT_LT(summary("lenet-1")["peak_memory_bytes"], 200'000'000);
}

}  // namespace
}  // namespace lockstep::testing
