// Whole training runs on real data reach their accuracies.
#include "e2e/accuracy.h"

namespace lockstep::testing {
namespace {

class FullAccuracy : public Accuracy {
 protected:
  [[nodiscard]] double on_mnist(const std::string& model, const std::string& enough) const {
    return best({"train", model, "--data", real_mnist(), "--stop-accuracy", enough, "--quiet"}, model + "-1");
  }
  [[nodiscard]] double on_fashion_mnist(const std::string& model, const Words& more) const {
    Words words{"train", model, "--dataset", "fashion-mnist", "--epochs", "20", "--quiet"};
    words.insert(words.end(), more.begin(), more.end());
    return best(words, model + "-1");
  }
};

TEST_F(FullAccuracy, SoftmaxRegressionReaches92OnMnist) {
  if (real_mnist().empty()) GTEST_SKIP() << "there is no MNIST on this machine";
  EXPECT_GE(on_mnist("lr", "0.92"), 0.92);
}

TEST_F(FullAccuracy, LenetReaches99OnMnist) {
  if (real_mnist().empty()) GTEST_SKIP() << "there is no MNIST on this machine";
  EXPECT_GE(on_mnist("lenet", "0.99"), 0.99);
}

TEST_F(FullAccuracy, SoftmaxRegressionReaches84OnFashionMnist) {
  if (!has_fashion_mnist()) GTEST_SKIP() << "package dataset-fashion-mnist is not installed";
  EXPECT_GE(on_fashion_mnist("lr", {"--lr", "0.1", "--stop-accuracy", "0.84"}), 0.84);
}

TEST_F(FullAccuracy, LenetReaches90OnFashionMnist) {
  if (!has_fashion_mnist()) GTEST_SKIP() << "package dataset-fashion-mnist is not installed";
  EXPECT_GE(on_fashion_mnist("lenet", {"--stop-accuracy", "0.90"}), 0.90);
}

}  // namespace
}  // namespace lockstep::testing
