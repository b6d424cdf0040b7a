// Plans of clusters: what is computed by hand here is what a plan says, and what cannot be is refused in one line.
#include "plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "lockstep/error.h"
#include "plan/output.h"

namespace lockstep::plan {
namespace {

using predict::Strategy;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

/// A step of 12 ms: 1 ms and 0.1 ms for each of 100 examples, in both passes, and no other costs.
Basis basis_of_a_test() {
  Basis basis;
  basis.name = "test";
  basis.model = "lenet";
  basis.dataset = "mnist";
  basis.tensors = predict::even_tensors(250'000);  // 1 MB
  basis.forward = {0.0005, 0.00005};
  basis.backward = {0.0005, 0.00005};
  basis.optimizer = 0.001;
  basis.spread = 0;
  basis.batch = 100;
  basis.costs = {.message = 0, .byte = 0, .wake = 0, .add = 0, .update = 0, .update_byte = 0};
  basis.epoch_examples = 60'000;
  basis.epochs = 10;
  basis.memory_fixed = 1e9;
  basis.memory_each = 1e6;
  basis.node_memory = 4e9;
  return basis;
}

Choices choices_of_a_test() {
  Choices choices;
  choices.nodes = {1, 2, 4, 8};
  choices.rates = {1.25e8};
  choices.strategies = {Strategy::all_reduce};
  return choices;
}

const Row& row_of(const Plan& plan, int64_t nodes, Strategy strategy) {
  for (const Row& row : plan.rows) {
    if (row.nodes == nodes && row.strategy == strategy) return row;
  }
  throw Error("no such row");
}

TEST(Plan, OneNodeTakesTheTimeOfItsParts) {
  const Plan plan = make_plan(basis_of_a_test(), choices_of_a_test());
  const Row& one = row_of(plan, 1, Strategy::local);
  EXPECT_NEAR(one.step.value, 0.012, 1e-6);
  EXPECT_NEAR(one.speed_up, 1, 1e-9);
  EXPECT_NEAR(one.seconds.value, 600'000 / (100 / 0.012), 0.1);
}

TEST(Plan, AllReduceOverASlowNetworkIsLimitedByIt) {
  Choices choices = choices_of_a_test();
  choices.rates = {1.25e9, 1.25e6};
  const Plan plan = make_plan(basis_of_a_test(), choices);
  for (const Row& row : plan.rows) {
    if (row.nodes != 8) continue;
    // 2 (N - 1) / N of a megabyte each way, with headers.
    const double sending = 1e6 * 1.75 * 1.045 / row.rate;
    EXPECT_NEAR(row.step.value, 0.012 + sending, 0.1 * (0.012 + sending));
    EXPECT_THAT(row.limit, HasSubstr(row.rate < 1e8 ? "network" : "computing"));
    EXPECT_NEAR(row.efficiency, 0.012 / row.step.value, 0.01);
  }
  EXPECT_EQ(plan.rows[*plan.fastest].nodes, 8);
  EXPECT_EQ(plan.rows[*plan.fastest].rate, 1.25e9);
  ASSERT_TRUE(plan.knee.has_value());
  EXPECT_EQ(plan.rows[*plan.knee].nodes, 8);
}

TEST(Plan, TheKneeIsWhereAServerIsFull) {
  Choices choices = choices_of_a_test();
  choices.strategies = {Strategy::servers};
  choices.nodes = {2, 3, 5, 9, 17, 33};
  choices.rates = {1.25e9};
  const Plan plan = make_plan(basis_of_a_test(), choices);
  ASSERT_TRUE(plan.knee.has_value());
  // A worker sends and receives a megabyte in 0.8 ms each: ten of them double the step.
  EXPECT_GE(plan.rows[*plan.knee].nodes, 5);
  EXPECT_LE(plan.rows[*plan.knee].nodes, 17);
  EXPECT_THAT(row_of(plan, 33, Strategy::servers).limit, HasSubstr("network"));
  EXPECT_GT(row_of(plan, 33, Strategy::servers).network, 0.4);
}

TEST(Plan, NodesWithoutAWorkerAreLeftOut) {
  Choices choices = choices_of_a_test();
  choices.strategies = {Strategy::servers};
  choices.servers = {2};
  const Plan plan = make_plan(basis_of_a_test(), choices);
  EXPECT_EQ(plan.rows.size(), 3);  // 1, 4 and 8
  EXPECT_THAT(plan.notes, Contains(HasSubstr("2 nodes hold no worker beside 2 parameter servers")));
  choices.nodes = {2};
  try {
    make_plan(basis_of_a_test(), choices);
    ADD_FAILURE();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("take more --nodes or fewer --ps"));
  }
}

TEST(Plan, WhatDoesNotFitIntoMemoryIsNotChosen) {
  Choices choices = choices_of_a_test();
  choices.batches = {100, 5000};
  const Plan plan = make_plan(basis_of_a_test(), choices);
  for (const Row& row : plan.rows) {
    EXPECT_EQ(row.fits, row.batch == 100);
    EXPECT_NEAR(row.memory, 1e9 + 1e6 * row.batch, 1);
  }
  EXPECT_EQ(plan.rows[*plan.fastest].batch, 100);
  choices.memory = 1e6;
  EXPECT_FALSE(make_plan(basis_of_a_test(), choices).fastest.has_value());
}

TEST(Plan, TheKneeFitsIntoMemory) {
  Choices choices = choices_of_a_test();
  choices.strategies = {Strategy::servers};
  choices.nodes = {2, 3, 5, 9, 17};
  choices.rates = {1.25e9};
  choices.batches = {100};
  // A server holds a gradient of each worker: eight of them are too many.
  Basis basis = basis_of_a_test();
  basis.tensors = predict::even_tensors(250'000'000);
  choices.rates = {1e15};
  choices.memory = 9e9;
  const Plan plan = make_plan(basis, choices);
  ASSERT_TRUE(plan.knee.has_value());
  EXPECT_TRUE(plan.rows[*plan.knee].fits) << plan.rows[*plan.knee].nodes << " nodes";
}

TEST(Plan, AStepLeavesOutEvaluationsAndTheTimeToTheEndDoesNot) {
  Basis basis = basis_of_a_test();
  const Plan without = make_plan(basis, choices_of_a_test());
  basis.aside_each = 1e-5;
  const Plan with = make_plan(basis, choices_of_a_test());
  for (size_t i = 0; i < with.rows.size(); ++i) {
    EXPECT_DOUBLE_EQ(with.rows[i].step.value, without.rows[i].step.value);
    EXPECT_NEAR(with.rows[i].seconds.value - without.rows[i].seconds.value, 600'000 * 1e-5, 1e-6);
  }
}

TEST(Plan, MemoryOfOtherBatchesOrOfAnUnknownWorkerIsNotMadeUp) {
  Basis basis = basis_of_a_test();
  basis.from_run = true;
  basis.memory_each = 0;
  Choices choices = choices_of_a_test();
  choices.strategies = {Strategy::servers};
  choices.batches = {100};
  EXPECT_THAT(make_plan(basis, choices).notes, Not(Contains(HasSubstr("larger batches need more"))));
  choices.batches = {100, 200};
  EXPECT_THAT(make_plan(basis, choices).notes,
              Contains("Memory is that of the run's batch of 100; larger batches need more."));
  basis.memory_fixed = kUnknown;
  for (const Row& row : make_plan(basis, choices).rows) EXPECT_TRUE(std::isnan(row.memory)) << row.nodes;
}

TEST(Plan, AProfileSaysHowTheComputingOfARunGrowsWithTheBatch) {
  Basis basis = basis_of_a_test();  // 5.5 ms for each pass of 100 examples
  ModelProfile profile{.model = "lenet", .tensors = {{250'000, 0.25}}, .memory_each = 2e6};
  // Half as fast as the run, with a step between 50 and 100 examples; two threads are none of the run's.
  profile.points = {{.batch = 50, .threads = 1, .forward = 0.002, .backward = 0.004},
                    {.batch = 100, .threads = 1, .forward = 0.011, .backward = 0.011},
                    {.batch = 200, .threads = 1, .forward = 0.012, .backward = 0.022},
                    {.batch = 50, .threads = 2, .forward = 1, .backward = 1}};
  add_growth(profile, basis);
  EXPECT_DOUBLE_EQ(basis.forward.of(100), 0.0055) << "the run's own";
  EXPECT_DOUBLE_EQ(basis.forward.of(50), 0.001);
  EXPECT_DOUBLE_EQ(basis.forward.of(25), 0.0005) << "in proportion";
  EXPECT_DOUBLE_EQ(basis.forward.of(150), 0.00575) << "interpolated";
  EXPECT_DOUBLE_EQ(basis.forward.of(400), 0.012);
  EXPECT_DOUBLE_EQ(basis.backward.of(200), 0.011);
  EXPECT_DOUBLE_EQ(basis.memory_each, 2e6);
  profile.tensors = {{250'001, 1}};
  EXPECT_THROW(add_growth(profile, basis), UsageError);
}

TEST(Plan, TheCheapestIsNotTheFastest) {
  Choices choices = choices_of_a_test();
  choices.price = 3.6;
  const Plan plan = make_plan(basis_of_a_test(), choices);
  EXPECT_EQ(plan.rows[*plan.fastest].nodes, 8);
  EXPECT_EQ(plan.rows[*plan.cheapest].nodes, 1);
  const Row& four = row_of(plan, 4, Strategy::all_reduce);
  EXPECT_NEAR(four.money, four.seconds.value * 4 * 0.001, 1e-9);
}

TEST(Plan, IntervalsHoldTheValueAndGrowWithTheDoubt) {
  Basis basis = basis_of_a_test();
  const auto width = [&] {
    const Plan plan = make_plan(basis, choices_of_a_test());
    for (const Row& row : plan.rows) {
      EXPECT_LE(row.step.low, row.step.value);
      EXPECT_GE(row.step.high, row.step.value);
      EXPECT_LE(row.seconds.low, row.seconds.high);
    }
    return plan.rows[0].step.high - plan.rows[0].step.low;
  };
  const double sure = width();
  basis.error = 0.2;
  EXPECT_NEAR(width() / sure, 4, 0.1);
}

TEST(Plan, FasterCoresAndMoreOfThemHelp) {
  Choices choices = choices_of_a_test();
  choices.nodes = {1};
  choices.cores = 4;
  EXPECT_NEAR(make_plan(basis_of_a_test(), choices).rows[0].step.value, 0.003, 1e-6);
  choices.cores = 1;
  choices.speed = 2;
  EXPECT_NEAR(make_plan(basis_of_a_test(), choices).rows[0].step.value, 0.006, 1e-6);
}

TEST(Plan, AQuotaAndASlowProcessorAreCompared) {
  Choices choices = choices_of_a_test();
  choices.cores = 0.5;
  choices.nodes = {4};
  choices.rates = {2.5e7};
  const Plan plan = make_plan(basis_of_a_test(), choices);
  EXPECT_GT(plan.slower_machines, 1) << "the pause hides behind the network";
  EXPECT_THAT(plan.notes, Contains(HasSubstr("nodes with a quota here: they pause")));
}

TEST(Plan, TheTimeToAnAccuracyIsKnownBetweenRecordedBatches) {
  Choices choices = choices_of_a_test();
  choices.goal = Goal{.field = "accuracy", .value = 0.97, .reached = {{100, 60'000}, {400, 120'000}}};
  const Plan plan = make_plan(basis_of_a_test(), choices);
  const Row& two = row_of(plan, 2, Strategy::all_reduce);
  EXPECT_NEAR(two.seconds.value * two.examples.value, 60'000 * std::sqrt(2), 1);
  EXPECT_TRUE(std::isnan(row_of(plan, 8, Strategy::all_reduce).seconds.value)) << "800 is far beyond 400";
  choices.goal->reached.pop_back();
  const Plan unknown = make_plan(basis_of_a_test(), choices);
  EXPECT_THAT(unknown.notes,
              Contains(HasSubstr("The time to an accuracy of 0.97 is not known: 1 recorded global batch ")));
  for (const Row& row : unknown.rows) EXPECT_TRUE(std::isnan(row.seconds.value));
}

TEST(Plan, AnswersInAllItsForms) {
  Choices choices = choices_of_a_test();
  choices.strategies = {Strategy::servers, Strategy::all_reduce};
  const Plan plan = make_plan(basis_of_a_test(), choices);
  const auto json = nlohmann::json::parse(to_json(plan));
  EXPECT_EQ(json["rows"].size(), plan.rows.size());
  EXPECT_EQ(json["rows"][1]["strategy"], "ps");
  EXPECT_EQ(json["rows"][1]["rate_bits"], 1e9);
  const auto trace = nlohmann::json::parse(trace_json(plan.rows.back()));
  EXPECT_GT(trace["traceEvents"].size(), 20);
  EXPECT_EQ(trace["traceEvents"][0]["name"], "process_name");
  for (const auto& event : trace["traceEvents"]) EXPECT_TRUE(event["ph"] == "M" || event["dur"].get<double>() > 0);
  const std::string page = html(plan);
  EXPECT_THAT(page, HasSubstr("data-chart=\"speed\""));
  EXPECT_THAT(page, HasSubstr("Content-Security-Policy"));
  EXPECT_THAT(experiment_yaml(plan, 4), AllOf(HasSubstr("emulate: {cores: 1, rate: 1gbit}"),
                                              HasSubstr("# not on 4 cores: 8 nodes, all-reduce, batch 100")));
  EXPECT_THROW((void)experiment_yaml(plan, 0.5), UsageError);
}

TEST(Plan, AThousandWorkersArePlanned) {
  Choices choices = choices_of_a_test();
  choices.nodes = {1000};
  choices.strategies = {Strategy::servers, Strategy::all_reduce};
  const Plan plan = make_plan(basis_of_a_test(), choices);
  ASSERT_EQ(plan.rows.size(), 2);
  EXPECT_EQ(plan.rows[0].workers, 999);
  EXPECT_GT(row_of(plan, 1000, Strategy::all_reduce).speed_up, plan.rows[0].speed_up);
}

}  // namespace
}  // namespace lockstep::plan
