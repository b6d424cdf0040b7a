// A cluster computes the same as one process: real processes on loopback, bit for bit unless sums have another order.
#include <cmath>

#include "e2e/cluster.h"

namespace lockstep::testing {
namespace {

class ClusterEquality : public ClusterTest {
 protected:
  const Words one_of_each{"--workers", "1", "--ps", "1", "--sync"};

  void put_dropout_model() const {
    std::ofstream(folder / "dropping.yaml") << "name: dropping\n"
                                               "image: [1, 28, 28]\n"
                                               "layers:\n"
                                               "  - flatten\n"
                                               "  - dense: 16\n"
                                               "  - relu\n"
                                               "  - dropout: 0.4\n"
                                               "  - dense: $classes\n";
  }
};

TEST_F(ClusterEquality, OneSyncWorkerIsOneProcessBitForBit) {
  put_dropout_model();
  const std::vector<std::pair<std::string, Words>> cases{
      {"plain", {"lr", "--epochs", "2", "--batch", "50"}},
      {"short", {"lr", "--epochs", "2", "--batch", "64"}},  // the last batch of a pass is smaller
      {"adam", {"lenet", "--epochs", "1", "--batch", "50", "--optimizer", "adam"}},
      {"momentum", {"lenet", "--epochs", "1", "--batch", "50", "--optimizer", "momentum", "--lr", "0.01"}},
      {"nesterov", {"lr", "--epochs", "1", "--optimizer", "momentum", "--nesterov", "--weight-decay", "0.01"}},
      {"cosine", {"lr", "--epochs", "2", "--batch", "50", "--schedule", "cosine", "--warmup-steps", "5"}},
      {"clip", {"lr", "--epochs", "1", "--batch", "50", "--clip-norm", "0.5"}},
      {"dropout", {"dropping.yaml", "--epochs", "2", "--batch", "50", "--optimizer", "adam", "--lr", "0.002"}},
      {"gather", {"lr", "--epochs", "2", "--batch", "30", "--accumulate", "3"}},
      {"steps", {"lr", "--epochs", "0", "--steps", "17", "--batch", "50"}},
      {"fixed", {"lr", "--epochs", "3", "--batch", "50", "--steps-per-epoch", "7"}}};
  for (const auto& [name, words] : cases) {
    SCOPED_TRACE(name);
    const Result alone = train(name + "-alone", words + data());
    const Result together = train(name + "-together", words + data() + one_of_each);
    expect_same_bits(alone, together);
  }
}

TEST_F(ClusterEquality, SeveralServersChangeNoBitHoweverTheParametersArePlaced) {
  const Words words = Words{"lenet", "--epochs", "1", "--batch", "50", "--optimizer", "adam"} + data();
  const Result alone = train("alone", words);
  for (const char* placement : {"balanced", "round-robin"}) {
    SCOPED_TRACE(placement);
    expect_same_bits(alone, train(placement, words + Words{"--workers", "1", "--ps", "3", "--placement", placement}));
  }
  // The same holds for several workers.
  const Words three{"--workers", "3"};
  const Result one = train("one-server", words + three + Words{"--ps", "1"});
  expect_same_bits(one, train("two-servers", words + three + Words{"--ps", "2"}));
}

TEST_F(ClusterEquality, NSyncWorkersAreOneProcessThatAccumulatesN) {
  put_dropout_model();
  for (const char* model : {"lr", "dropping.yaml", "lenet"}) {
    SCOPED_TRACE(model);
    const Words words =
        Words{model, "--epochs", "2", "--batch", "50", "--optimizer", "momentum", "--lr", "0.02"} + data();
    const std::string name = std::string(model).substr(0, 4);
    const Result alone = train(name + "-alone", words + Words{"--accumulate", "3"});
    const Result together = train(name + "-together", words + Words{"--workers", "3", "--ps", "1", "--sync"});
    expect_same_bits(alone, together);
  }
}

TEST_F(ClusterEquality, NSyncWorkersAreOneProcessWithNTimesTheBatchWithinRounding) {
  const Words words = Words{"lr", "--epochs", "2"} + data(700);  // the last round is short and shared unevenly
  const Result alone = train("alone", words + Words{"--batch", "150"});
  const Result together = train("together", words + Words{"--batch", "50", "--workers", "3", "--ps", "1"});
  EXPECT_EQ(alone.steps, together.steps);
  EXPECT_LT(distance(alone, together), 2e-6);
  const Result global = train("global", words + Words{"--global-batch", "150", "--workers", "3", "--ps", "1"});
  expect_same_bits(together, global);
}

TEST_F(ClusterEquality, SummedLossesWithReduceSumAreOneProcessWithNTimesTheBatch) {
  const Words words = Words{"autoencoder", "--epochs", "1", "--optimizer", "sgd", "--lr", "0.0001"} + data(300);
  const Result alone = train("alone", words + Words{"--batch", "60"});
  const Words three{"--batch", "20", "--workers", "3", "--ps", "1"};
  EXPECT_LT(distance(alone, train("sum", words + three + Words{"--reduce", "sum"})), 2e-6);
  EXPECT_GT(distance(alone, train("mean", words + three + Words{"--reduce", "mean"})), 1e-5);
}

TEST_F(ClusterEquality, TheSameSeedGivesTheSameBitsOfSyncWorkersEachTime) {
  const Words words = Words{"lenet", "--epochs", "2", "--batch", "20", "--workers", "3", "--ps", "2"} + data();
  expect_same_bits(train("first", words), train("second", words));
}

TEST_F(ClusterEquality, ACheckpointGoesFromOneProcessToAClusterAndBack) {
  const Words words = Words{"lenet", "--batch", "50", "--optimizer", "adam"} + data();
  const Result whole = train("whole", words + Words{"--epochs", "3"});
  // One process, then one worker with two servers, then one process again.
  (void)train("parts", words + Words{"--epochs", "1"});
  const Ended cluster = run({"train", "--resume", "parts", "--epochs", "2", "--workers", "1", "--ps", "2", "--quiet"});
  ASSERT_EQ(cluster.code, 0) << cluster.out << cluster.err;
  const Ended back = run({"train", "--resume", "parts", "--epochs", "3", "--workers", "0", "--quiet"});
  ASSERT_EQ(back.code, 0) << back.out << back.err;
  const Result parts = result("parts");
  EXPECT_EQ(parts.steps, whole.steps);
  EXPECT_EQ(parts.values, whole.values);
}

}  // namespace
}  // namespace lockstep::testing
