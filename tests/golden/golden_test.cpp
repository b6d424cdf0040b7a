// Every model follows PyTorch: from the same parameters, over the same batches, masks and noise, its losses agree with
// PyTorch's (tests/golden/losses/*.csv) for 20 steps of SGD and of Adam.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "exchange/local_exchange.h"
#include "golden/golden_cases.h"
#include "settings/machine.h"

namespace lockstep::golden {
namespace {

constexpr double kFirstStep = 1e-5;
constexpr double kAllSteps = 1e-3;

struct Trajectory {
  Case golden;
  std::string optimizer;
};

/// Returns the column of an optimizer; files have the lines "step,sgd,adam".
std::vector<double> expected_losses(const Trajectory& trajectory) {
  std::ifstream file(std::string(LOCKSTEP_GOLDEN_DIR) + "/losses/" + trajectory.golden.name + ".csv");
  std::vector<double> losses;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    const size_t first = line.find(',');
    const size_t second = line.find(',', first + 1);
    losses.push_back(std::stod(line.substr((trajectory.optimizer == "sgd" ? first : second) + 1)));
  }
  return losses;
}

std::vector<double> our_losses(const Trajectory& trajectory) {
  const Case& golden = trajectory.golden;
  const auto backend = settings::make_backend("cpu", 2);
  program::ParameterStore store = start_of(golden);
  train::Programs programs(spec_of(golden), train::Purpose::training, *backend, store.values().data(),
                           store.gradients().data());
  exchange::LocalOptions options;
  options.optimizer.method = optim::parse_method(trajectory.optimizer);
  options.schedule.base = trajectory.optimizer == "sgd" ? golden.sgd_rate : golden.adam_rate;
  options.threads = 2;
  exchange::LocalExchange exchange(store, options);
  std::vector<double> losses;
  for (uint64_t step = 0; step < kSteps; ++step) {
    const Batch inputs = batch_of(golden, step);
    data::Batch batch;
    batch.images = inputs.images.data();
    batch.labels = inputs.labels.data();
    batch.count = golden.batch;
    program::Program& program = programs.bind(batch);
    exchange.begin({step, static_cast<uint64_t>(golden.batch)});
    program.run({kSeed, step, 0}, [&](program::ParameterRange range) { exchange.ready(range, {}); });
    losses.push_back(static_cast<double>(program.output(0).as<float>()[0]));
    exchange.finish({}).value_or_throw();
    programs.parameters_changed();
  }
  return losses;
}

class GoldenTrajectory : public testing::TestWithParam<Trajectory> {};

TEST_P(GoldenTrajectory, FollowsPyTorch) {
  const std::vector<double> expected = expected_losses(GetParam());
  const std::vector<double> ours = our_losses(GetParam());
  ASSERT_EQ(expected.size(), ours.size()) << "tests/golden/losses/" << GetParam().golden.name << ".csv";
  double worst = 0;
  for (size_t step = 0; step < ours.size(); ++step) {
    const double difference = std::abs(ours[step] - expected[step]) / std::abs(expected[step]);
    EXPECT_LT(difference, step == 0 ? kFirstStep : kAllSteps)
        << "step " << step << ": " << ours[step] << ", PyTorch " << expected[step];
    worst = std::max(worst, difference);
  }
  RecordProperty("worst_relative_difference", std::to_string(worst));
}

std::vector<Trajectory> trajectories() {
  std::vector<Trajectory> all;
  for (const Case& golden : cases()) {
    for (const char* optimizer : {"sgd", "adam"}) all.push_back({golden, optimizer});
  }
  return all;
}

std::string name_of(const testing::TestParamInfo<Trajectory>& info) {
  std::string name = info.param.golden.name + "_" + info.param.optimizer;
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenTrajectory, testing::ValuesIn(trajectories()), name_of);

TEST(GoldenCases, CoverEveryModelOfTheZoo) {
  for (const nn::ModelDef& model : nn::zoo()) {
    const bool covered =
        std::any_of(cases().begin(), cases().end(), [&](const Case& golden) { return golden.model == model.name; });
    EXPECT_TRUE(covered) << model.name;
  }
}

}  // namespace
}  // namespace lockstep::golden
