#include "records/why.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>

#include "predict/counterfactual.h"
#include "records/fit.h"

namespace lockstep::records {
namespace {

using predict::Training;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Phases = std::vector<std::pair<std::string, double>>;  ///< seconds in 1000 steps

RoleRecord role(const std::string& name, const Phases& phases, double steps = 1000) {
  RoleRecord record;
  record.role = name;
  record.has_summary = true;
  for (const auto& [phase, seconds] : phases) {
    record.phases.push_back(
        {phase, steps, seconds, 0, seconds / steps, seconds / steps, seconds / steps, seconds / steps});
  }
  return record;
}

RoleRecord with(RoleRecord record, const std::map<std::string, double>& resources) {
  record.samples = 20;
  for (const auto& [column, value] : resources) record.resources[column] = {value, value, value, value};
  return record;
}

RunRecord run_of(std::vector<RoleRecord> roles, double steps = 1000) {
  RunRecord run;
  run.name = "lr-1";
  run.settings = {{"batch", "100"}};
  run.roles = std::move(roles);
  for (const RoleRecord& r : run.roles) {
    if (!r.trains() || run.roles.size() == 1) continue;
    WorkerRow row;
    row.role = r.role;
    row.iterations = steps;
    row.examples = steps * 100;
    run.roles.front().summary.workers.push_back(row);
  }
  auto& numbers = run.roles.front().summary.numbers;
  numbers["steps"] = steps;
  numbers["seconds"] = 10;
  numbers["examples"] = steps * 100;
  numbers["threads"] = 1;
  return run;
}

std::string text_of(const Diagnosis& diagnosis) {
  std::string text;
  for (const std::string& sentence : diagnosis.sentences) text += sentence + "\n";
  return text;
}

/// Checks what holds for every diagnosis: a headline, and numbers in each sentence.
Diagnosis checked(const RunRecord& run) {
  Diagnosis diagnosis = diagnose(run);
  EXPECT_FALSE(diagnosis.headline.empty());
  EXPECT_FALSE(diagnosis.sentences.empty());
  for (const std::string& sentence : diagnosis.sentences) {
    EXPECT_TRUE(std::any_of(sentence.begin(), sentence.end(), [](unsigned char c) { return std::isdigit(c) != 0; }))
        << sentence;
  }
  return diagnosis;
}

/// A cluster of small emulated nodes: a server on the first, a worker on each other one.
Training cluster_of(size_t workers, double rate = 1.25e8, double cores = 0.5) {
  Training training;
  training.strategy = predict::Strategy::servers;
  training.tensors = predict::even_tensors(60'000);
  training.batch = 32;
  for (size_t i = 0; i <= workers; ++i) {
    predict::Node node{.name = "node" + std::to_string(i + 1), .cores = cores, .quota_period = 0.02};
    node.kept = predict::kept_of_quota(cores);
    node.link = {.rate = rate, .latency = 0, .burst = std::max(128.0 * 1024, rate * 0.002)};
    training.nodes.push_back(node);
  }
  for (size_t i = 1; i <= workers; ++i) {
    training.workers.push_back(
        {.node = i, .work = {.forward = 0.004, .backward = 0.007, .rest = 1e-5, .spread = 0.05}});
  }
  training.servers.push_back({.node = 0});
  return training;
}

Training alone() {
  Training training;
  training.batch = 32;
  training.tensors = predict::even_tensors(60'000);
  training.nodes.push_back({.name = "north", .cores = 2});
  training.workers.push_back(
      {.work = {.forward = 0.004, .backward = 0.007, .optimizer = 1e-3, .rest = 1e-5, .threads = 2}});
  return training;
}

RoleRecord recorded_worker(const Training& training, const predict::Prediction& played, size_t i, double steps) {
  const predict::WorkerTimes& times = played.workers[i];
  const bool single = training.workers.size() == 1;
  const auto all = [&](double each) { return each * steps; };
  RoleRecord record = role(single ? "process" : "worker:" + std::to_string(i),
                           {{"data", all(times.data)},
                            {"forward", all(times.forward)},
                            {"backward", all(times.backward)},
                            {"optimizer", all(times.optimizer)},
                            {"push", all(times.push)},
                            {"pull", all(times.pull)},
                            {"transfer", all(times.transfer)},
                            {"others", all(times.others)},
                            {"evaluation", all(times.evaluation)},
                            {"checkpoint", all(times.checkpoint)},
                            {"rest", all(times.rest)}},
                           steps);
  const predict::Worker& worker = training.workers[i];
  const predict::Node& node = training.nodes[worker.node];
  const double computing = worker.work.forward + worker.work.backward + worker.work.optimizer + worker.work.rest;
  const double used = (computing * worker.work.threads + times.messages) / played.step + node.kept;
  const double others = std::min(node.cores - used, node.others);
  record.host = node.name;
  record.summary.numbers["threads"] = worker.work.threads;
  record.summary.numbers["resources.cores"] = node.cores;
  return with(std::move(record),
              {{"cpu_percent", used * 100}, {"node_cpu_percent", (used + others) / node.cores * 100}});
}

/// Returns what a run would record that is exactly like the model of a training.
RunRecord recorded(const Training& training) {
  const double steps = 1000;
  const predict::Prediction played = predict::simulate(training, {.steps = 60});
  std::vector<RoleRecord> roles;
  for (size_t i = 0; i < training.workers.size(); ++i) {
    roles.push_back(recorded_worker(training, played, i, steps));
  }
  for (size_t i = 0; i < training.servers.size(); ++i) {
    const double used = played.servers[i] + training.nodes[training.servers[i].node].kept;
    roles.push_back(with(role("ps:" + std::to_string(i), {{"apply", 1}}), {{"cpu_percent", used * 100}}));
  }
  RunRecord run = run_of(std::move(roles), steps);
  run.settings = {{"batch", std::to_string(static_cast<int>(training.batch))},
                  {"mode", training.sync ? "sync" : "async"}};
  RunSummary& summary = run.roles.front().summary;
  summary.numbers["parameters"] = static_cast<double>(training.elements());
  summary.numbers["seconds"] = played.step * steps;
  summary.numbers["threads"] = training.workers[0].work.threads;
  if (training.workers.size() == 1) return run;
  summary.texts["strategy"] = training.strategy == predict::Strategy::servers ? "ps" : "allreduce";
  for (size_t n = 0; n < training.nodes.size(); ++n) {
    const predict::Node& node = training.nodes[n];
    NodeRecord record{.name = node.name, .address = "", .cores = node.cores};
    record.rate = node.link.rate * 8;
    record.delay_seconds = node.link.latency;
    for (size_t i = 0; i < training.workers.size(); ++i) {
      if (training.workers[i].node == n) record.roles.push_back("worker:" + std::to_string(i));
    }
    for (size_t i = 0; i < training.servers.size(); ++i) {
      if (training.servers[i].node == n) record.roles.push_back("ps:" + std::to_string(i));
    }
    run.nodes.push_back(std::move(record));
  }
  return run;
}

/// Expects the first cause of a run that is like the model of `training`, and its gain: the step that it names is the
/// one of the training without the cause, within 10 %.
Diagnosis expect_cause(const Training& training, const std::string& cause, const Training& without) {
  const RunRecord run = recorded(training);
  Diagnosis why = checked(run);
  EXPECT_EQ(why.cause, cause) << why.headline;
  EXPECT_LT(why.unexplained, 0.1);
  const double gone = predict::simulate(without, {.steps = 60}).step;
  EXPECT_NEAR(why.causes.front().step, gone, 0.1 * gone) << why.headline;
  return why;
}

TEST(Why, AHealthyClusterIsLimitedByComputing) {
  for (const predict::Strategy strategy : {predict::Strategy::servers, predict::Strategy::all_reduce}) {
    Training training = cluster_of(2, 1.25e9, 1);
    training.strategy = strategy;
    const Diagnosis why = checked(recorded(training));
    EXPECT_EQ(why.cause, "compute") << why.headline;
    EXPECT_LT(why.unexplained, 0.1);
    for (const Cause& cause : why.causes) {
      EXPECT_TRUE(cause.cause == "compute" || cause.cost < 0.25) << cause.cause << " " << cause.cost;
    }
  }
}

TEST(Why, Computing) {
  const Diagnosis why =
      checked(run_of({role("process", {{"data", 0.2}, {"forward", 3}, {"backward", 6}, {"rest", 0.8}})}));
  EXPECT_EQ(why.cause, "compute");
  EXPECT_EQ(why.headline, "Computing limited this run: 90 % of each step, 9.00 ms of 10.0 ms.");
  EXPECT_EQ(
      why.sentences[0],
      "Of 10.0 ms per step, computing took 9.00 ms (90 %), everything else 0.80 ms (8.0 %), waiting for data 0.20 "
      "ms (2.0 %).");
}

TEST(Why, AStepLeavesOutEvaluationsAsEverywhere) {
  const Diagnosis why = checked(run_of({role("process", {{"forward", 10}, {"evaluation", 2}})}));
  EXPECT_THAT(text_of(why), HasSubstr("Of 10.0 ms per step, computing took 10.0 ms (100 %); evaluations took another "
                                      "2.00 ms."));
}

TEST(Why, AStepThatIsShorterThanInTheSummarySaysWhatItLeavesOut) {
  const Diagnosis why = checked(run_of({role("process", {{"forward", 2}, {"backward", 3}})}));
  EXPECT_THAT(why.sentences[0], HasSubstr("Of 5.00 ms per step without the start-up, computing took 5.00 ms"));
}

TEST(Why, ComputingOnAMachineWithIdleCores) {
  const Diagnosis why =
      checked(run_of({with(role("process", {{"forward", 3}, {"backward", 6}}), {{"node_cpu_percent", 26}})}));
  EXPECT_EQ(why.cause, "compute");
  EXPECT_THAT(why.suggestions, Contains(AllOf(HasSubstr("26 % busy"), HasSubstr("--threads (now 1)"))));
}

TEST(Why, SlowLinksOfAll) {
  for (const predict::Strategy strategy : {predict::Strategy::servers, predict::Strategy::all_reduce}) {
    Training training = cluster_of(2, 2.5e6);
    training.strategy = strategy;
    const Diagnosis why = expect_cause(training, "network", predict::without(training, predict::Resource::network));
    EXPECT_THAT(why.headline, AllOf(HasSubstr("The network cost "), HasSubstr("240 kB each way at 20 Mbit/s.")));
    EXPECT_THAT(why.suggestions, Contains(AllOf(HasSubstr("--wire bf16"), HasSubstr("times as fast"))));
  }
}

TEST(Why, TheOneSlowLinkIsNamed) {
  Training training = cluster_of(3, 1.25e9);
  training.nodes[2].link.rate = 2.5e6;
  training.nodes[2].link.burst = 128.0 * 1024;
  const Diagnosis why = expect_cause(training, "network", cluster_of(3, 1.25e9));
  EXPECT_EQ(why.causes.front().who, "worker:1");
  EXPECT_THAT(why.headline, HasSubstr("The link of worker:1 cost "));
}

TEST(Why, AStarvedServerIsNamed) {
  Training training = cluster_of(2, 1.25e9);
  training.nodes.push_back(training.nodes[0]);
  training.servers.push_back({.node = 3});
  training.nodes[3].name = "node4";
  training.nodes[3].cores = 0.01;
  Training fed = training;
  fed.nodes[3].cores = 0.5;
  const Diagnosis why = checked(recorded(training));
  EXPECT_EQ(why.cause, "servers") << why.headline;
  EXPECT_EQ(why.causes.front().who, "ps:1");
  EXPECT_THAT(why.headline, AllOf(HasSubstr("The parameter server ps:1 cost "), HasSubstr("on 0.01 cores.")));
  const double gone = predict::simulate(fed, {.steps = 60}).step;
  EXPECT_NEAR(why.causes.front().step, gone, 0.1 * gone);
  EXPECT_THAT(why.suggestions, Contains(HasSubstr("--ps 3")));
}

TEST(Why, OtherProgramsOnTheMachine) {
  Training training = alone();
  training.nodes[0].others = 4;
  const Diagnosis why = expect_cause(training, "programs", alone());
  EXPECT_THAT(why.headline, HasSubstr("Other programs on north cost 67 % of each step: they used 1.3 of its 2 cores."));
  training.nodes[0].others = 0;
  EXPECT_EQ(checked(recorded(training)).cause, "compute");
}

TEST(Why, OtherProgramsSlowAllThatAProcessDoes) {
  RunRecord run = run_of({with(role("process", {{"data", 0.8},
                                                {"forward", 2.9},
                                                {"backward", 7.8},
                                                {"evaluation", 0.8},
                                                {"checkpoint", 0.5},
                                                {"rest", 1.1}}),
                               {{"cpu_percent", 20}, {"node_cpu_percent", 100}})});
  run.roles[0].summary.numbers["resources.cores"] = 2;
  const Diagnosis why = checked(run);
  ASSERT_EQ(why.cause, "programs") << why.headline;
  EXPECT_NEAR(why.causes.front().step, 0.2 * 12.6e-3, 0.15 * 0.2 * 12.6e-3) << "it had a fifth of a core";
  EXPECT_NEAR(why.causes.front().cost, 0.8, 0.04) << "evaluations are as slow";
}

TEST(Why, SharesOfAnUnknownNumberOfCoresAreNotTakenForCores) {
  Training training = alone();
  training.nodes[0].others = 4;
  RunRecord run = recorded(training);  // a run that still trains has no summary that tells the machine's cores
  for (RoleRecord& r : run.roles) r.summary.numbers.erase("resources.cores");
  const Diagnosis why = checked(run);
  EXPECT_NE(why.cause, "programs");
  EXPECT_THAT(text_of(why) + why.headline, AllOf(Not(HasSubstr("Other programs")), Not(HasSubstr("e+03"))));
}

TEST(Why, LogsThatAreBehindAreNoResumption) {
  RunRecord run = run_of({role("process", {{"forward", 9}, {"rest", 1}}, 900)});
  EXPECT_THAT(checked(run).sentences[0], HasSubstr("per step since it was resumed"));
  run.state = RunState::running;
  EXPECT_THAT(checked(run).sentences[0], HasSubstr("per step so far"));
  run.went_on = true;
  EXPECT_THAT(checked(run).sentences[0], HasSubstr("per step since it was resumed"));
}

TEST(Why, TheSlowWorkerIsNamed) {
  Training training = cluster_of(4, 1.25e9);
  training.nodes[3].cores = 0.2;
  Training even = training;
  even.nodes[3].cores = 0.5;
  const Diagnosis why = expect_cause(training, "others", even);
  EXPECT_EQ(why.causes.front().who, "worker:2");
  EXPECT_THAT(why.headline, HasSubstr("Waiting for worker:2 cost "));
  EXPECT_THAT(why.suggestions, Contains(HasSubstr("--aggregate 3")));
  Training async = training;
  async.sync = false;
  EXPECT_EQ(checked(recorded(async)).cause, "compute") << "without waiting for each other a slow worker is no limit";
}

TEST(Why, AWorkerThatIsStoppedAgainAndAgainIsNamed) {
  Training training = cluster_of(3, 1.25e9, 1);
  RunRecord run = recorded(training);
  // One step in ten takes 200 ms longer: 20 ms on average, in which the others wait.
  for (RoleRecord& r : run.roles) {
    for (PhaseTotals& phase : r.phases) {
      const bool stopped = r.role == "worker:1" && (phase.name == "forward" || phase.name == "pull");
      const bool waits = r.trains() && r.role != "worker:1" && phase.name == "others";
      if (stopped || waits) phase.seconds += waits ? 20 : 10;
      phase.mean = phase.seconds / 1000;
    }
  }
  const Diagnosis why = checked(run);
  EXPECT_EQ(why.cause, "others") << why.headline;
  EXPECT_EQ(why.causes.front().who, "worker:1");
  EXPECT_LT(why.unexplained, 0.1);
  const double gone = predict::simulate(training, {.steps = 60}).step;
  EXPECT_NEAR(why.causes.front().step, gone, 0.15 * gone);
}

TEST(Fit, AStopIsTakenOutOfWhatItStopped) {
  RunRecord run = recorded(cluster_of(2, 1.25e9, 1));
  for (RoleRecord& r : run.roles) {
    for (PhaseTotals& phase : r.phases) {
      if (r.role == "worker:1" && (phase.name == "push" || phase.name == "rest")) phase.seconds += 5;
      if (r.role == "worker:0" && phase.name == "others") phase.seconds += 10;
      phase.mean = phase.seconds / 1000;
    }
  }
  const Fit model = fit(run);
  ASSERT_TRUE(model.there()) << model.missing;
  const auto computing = [&](size_t i) {
    return model.training.workers[i].work.forward + model.training.workers[i].work.backward;
  };
  EXPECT_NEAR(model.training.workers[1].work.pause, 0.01, 0.001);
  EXPECT_NEAR(computing(1), computing(0), 0.05 * computing(0));
  EXPECT_LT(model.training.workers[1].work.rest, 1e-3);
}

TEST(Why, AServerThatPausesIsNotTakenForAStoppedWorker) {
  RunRecord run = recorded(cluster_of(2, 1.25e9, 1));
  // Half of the answers are late. At one worker that is the median, and not at the other.
  for (RoleRecord& r : run.roles) {
    for (PhaseTotals& phase : r.phases) {
      if (!r.trains() || (phase.name != "pull" && phase.name != "others")) continue;
      phase.seconds += phase.name == "pull" ? 8 : 2;
      phase.mean = phase.seconds / 1000;
      if (r.role == "worker:0") phase.p50 = phase.mean;
    }
  }
  EXPECT_THAT(checked(run).headline, Not(HasSubstr("stopped")));
}

TEST(Fit, PassesTakeNoMoreThanTheCpuTimeOfASmallQuota) {
  Training training = cluster_of(2, 1.25e9);
  for (predict::Worker& worker : training.workers) worker.work.forward = 7e-4, worker.work.backward = 1e-3;
  training.nodes[2].cores = 0.1;
  RunRecord run = recorded(training);
  for (PhaseTotals& phase : run.roles[1].phases) {
    if (phase.name == "forward") phase.p50 = 7e-4;
    if (phase.name == "backward") phase.p50 = 3e-3;  // most of them are paused
  }
  run.throttling["worker:1"] = {.periods = 2000, .throttled_periods = 1900, .seconds = 1000};
  const Fit model = fit(run);
  ASSERT_TRUE(model.there()) << model.missing;
  EXPECT_NEAR(model.training.workers[1].work.forward + model.training.workers[1].work.backward, 1.7e-3, 2e-4);
}

TEST(Why, AStoppedMemberOfAnAllReduceIsKnownByItsMonitor) {
  Training training = cluster_of(3, 1.25e9, 1);
  training.strategy = predict::Strategy::all_reduce;
  RunRecord run = recorded(training);
  for (RoleRecord& r : run.roles) {
    for (PhaseTotals& phase : r.phases) {
      if (phase.name == "transfer") phase.seconds += 20;  // of all: all wait
      phase.mean = phase.seconds / 1000;
    }
    r.summary.numbers["resources.every"] = 0.5;
    const bool late = r.role == "worker:1";
    r.monitor = CsvTable::parse(
        late ? "seconds\n0.5\n1\n1.9\n2\n2.9\n3\n3.9\n" : "seconds\n0.5\n1\n1.5\n2\n2.5\n3\n3.5\n", "monitor.csv");
  }
  const Diagnosis why = checked(run);
  EXPECT_EQ(why.cause, "others") << why.headline;
  EXPECT_EQ(why.causes.front().who, "worker:1");
  EXPECT_THAT(why.headline, HasSubstr("it was stopped now and then, for 20.0 ms per step on average."));
  // Stops may begin and end between two samples, and delay only some by a little.
  run.roles[1].monitor = CsvTable::parse("seconds\n0.5\n1\n1.58\n2\n2.57\n3\n3.58\n4\n4.57\n5\n", "monitor.csv");
  EXPECT_EQ(checked(run).causes.front().who, "worker:1");
  run.roles[1].monitor = run.roles[0].monitor;
  EXPECT_NE(checked(run).cause, "others");
  // A pause of a quota takes up to 20 ms: much of a short time between two samples, and still no stop.
  for (RoleRecord& r : run.roles) r.summary.numbers["resources.every"] = 0.1;
  run.roles[0].monitor = CsvTable::parse("seconds\n0.1\n0.2\n0.3\n0.4\n0.5\n0.6\n0.7\n", "monitor.csv");
  run.roles[2].monitor = run.roles[0].monitor;
  run.roles[1].monitor = CsvTable::parse("seconds\n0.1\n0.2\n0.32\n0.4\n0.52\n0.6\n0.72\n", "monitor.csv");
  EXPECT_NE(checked(run).cause, "others");
  run.roles[1].monitor = CsvTable::parse("seconds\n0.1\n0.2\n0.34\n0.4\n0.54\n0.6\n0.74\n", "monitor.csv");
  EXPECT_EQ(checked(run).cause, "others");
}

TEST(Why, AMemberThatIsStoppedWhileItComputesIsKnownByItsOwnTime) {
  Training training = cluster_of(3, 1.25e9, 1);
  training.strategy = predict::Strategy::all_reduce;
  RunRecord run = recorded(training);
  const auto stop = [&](const std::string& who) {
    for (RoleRecord& r : run.roles) {
      for (PhaseTotals& phase : r.phases) {
        if (phase.name == (r.role == who ? "backward" : "others")) phase.seconds += 10;
        phase.mean = phase.seconds / 1000;
      }
    }
  };
  stop("worker:1");
  const Diagnosis why = checked(run);
  EXPECT_EQ(why.cause, "others") << why.headline;
  EXPECT_EQ(why.causes.front().who, "worker:1");
  EXPECT_THAT(why.headline, HasSubstr("it was stopped now and then, for 10.0 ms per step on average."));
  stop("worker:2");
  EXPECT_THAT(checked(run).headline, Not(HasSubstr("was stopped"))) << "two that are late alike share a machine";
}

TEST(Why, DataThatIsSlowToMake) {
  Training training = alone();
  training.workers[0].work.load = 0.03;
  const Diagnosis why = expect_cause(training, "data", alone());
  EXPECT_THAT(why.headline, HasSubstr("Waiting for data cost 60 % of each step: a batch takes 30.0 ms to make"));
}

TEST(Why, EvaluationsAndCheckpoints) {
  Training training = alone();
  training.evaluation = 0.018;
  training.checkpoint = 0.001;
  const Diagnosis why = expect_cause(training, "evaluation", predict::without(training, predict::Resource::evaluation));
  EXPECT_THAT(why.headline, HasSubstr("Evaluations cost 58 % of the time, 18.0 s in all."));
  EXPECT_THAT(why.suggestions, Contains(AllOf(HasSubstr("--eval-every"), HasSubstr("1.4 times as fast"))));
  std::swap(training.evaluation, training.checkpoint);
  const Diagnosis rarer =
      expect_cause(training, "checkpoint", predict::without(training, predict::Resource::checkpoint));
  EXPECT_EQ(rarer.suggestions.front(), "Write checkpoints half as often (--checkpoint-every): 1.4 times as fast.");
}

TEST(Why, WhatWasMeasuredAndCanBeRemovedComesFirstIfItIsWorthSaying) {
  Training training = alone();
  training.checkpoint = 0.002;  // a seventh of the time
  EXPECT_EQ(checked(recorded(training)).cause, "checkpoint");
  training.checkpoint = 0.001;
  EXPECT_EQ(checked(recorded(training)).cause, "compute");
}

TEST(Why, CheckpointsOfTheBestEvaluationsBelongToTheEvaluations) {
  Training training = alone();
  training.evaluation = 0.002;
  training.checkpoint = 0.001;
  RunRecord run = recorded(training);
  for (PhaseTotals& phase : run.roles[0].phases) {
    if (phase.name == "checkpoint") phase.count = 5;
  }
  run.roles[0].evals = CsvTable::parse("examples,best\n9,1\n9,1\n9,1\n9,1\n9,0\n", "evals.csv");
  const double all = 0.01501;
  const auto evaluations = [&](const std::string& checkpoint_every) {
    run.settings.emplace_back("checkpoint_every", checkpoint_every);
    const Diagnosis why = checked(run);
    run.settings.pop_back();
    EXPECT_EQ(why.cause, "evaluation");
    return why.causes.front().cost * all;
  };
  EXPECT_NEAR(evaluations("1000000"), 0.002 + 0.8 * 0.001, 2e-5) << "all but the one at the end";
  EXPECT_NEAR(evaluations("500"), 0.002 + 0.4 * 0.001, 2e-5) << "three were due";
  EXPECT_NEAR(evaluations("200"), 0.002, 2e-5);
}

TEST(Why, AStepLeavesOutEvaluationsInEveryLine) {
  Training training = alone();
  training.evaluation = 0.001;
  const Diagnosis why = checked(recorded(training));
  EXPECT_THAT(why.headline, HasSubstr(" of 12.0 ms.")) << "of forward, backward and optimizer";
  EXPECT_THAT(text_of(why), HasSubstr("Of 12.0 ms per step"));
  EXPECT_NEAR(why.step, 0.01201, 1e-5);
  EXPECT_NEAR(why.aside, 0.001, 1e-5);
  for (const Cause& cause : why.causes) {
    if (cause.cause != "evaluation") continue;
    EXPECT_NEAR(cause.cost, 0.001 / 0.01301, 1e-3) << "of the time, to which evaluations belong";
    EXPECT_NEAR(cause.step, why.step, 1e-9) << "a step is as long without them";
  }
}

TEST(Why, WaitingForTheChiefsEvaluationIsNoPartOfAStep) {
  Training training = cluster_of(2, 1.25e9, 1);
  training.evaluation = 0.006;
  const Diagnosis why = checked(recorded(training));
  Training plain = cluster_of(2, 1.25e9, 1);
  EXPECT_NEAR(why.step, predict::simulate(plain, {.steps = 60}).step, 2e-4) << "on both workers";
  EXPECT_THAT(text_of(why), HasSubstr("evaluations took another 6.00 ms"));
}

TEST(Why, WaitingAtTheEndForAWorkersEvaluationIsNoPartOfAStep) {
  RunRecord run = recorded(cluster_of(2, 1.25e9, 1));
  const double step = checked(run).step;
  for (RoleRecord& r : run.roles) {
    for (PhaseTotals& phase : r.phases) {
      if (phase.name == (r.role == "worker:0" ? "others" : "evaluation") && r.trains()) phase.seconds += 3;
    }
  }
  EXPECT_NEAR(checked(run).step, step, 0.01 * step);
}

TEST(Why, WaitingForWorkersThatStartLaterIsNoPartOfAStep) {
  RunRecord run = recorded(cluster_of(2, 1.25e9, 1));
  const double step = checked(run).step;
  RoleRecord& chief = run.roles.front();
  for (PhaseTotals& phase : chief.phases) {
    if (phase.name == "others") phase.seconds += 2;
  }
  chief.phase_log = CsvTable::parse("steps,others\n10,2.001\n10,0.001\n10,0.001\n10,0.001\n10,0.001\n", "phases.csv");
  EXPECT_NEAR(checked(run).step, step, 0.01 * step);
}

TEST(Why, AShortRunThatBeganLateLeavesOutItsStart) {
  RunRecord run = recorded(cluster_of(2, 1.25e9, 1));
  const double step = checked(run).step;
  RoleRecord& chief = run.roles.front();
  for (PhaseTotals& phase : chief.phases) {
    if (phase.name == "others") phase.seconds += 2;
  }
  // An evaluation at the end makes the last line's wait long, too.
  chief.phase_log = CsvTable::parse("steps,others\n10,2.001\n10,\n10,0.01\n6,0.35\n", "phases.csv");
  EXPECT_NEAR(checked(run).step, step, 0.01 * step);
}

/// A cluster that waits for a slow server to start uses little CPU meanwhile.
TEST(Fit, CpuTimeBeforeTheFirstStepIsNotThatOfSteps) {
  RunRecord run = recorded(cluster_of(2, 1.25e9));
  const Fit at_once = fit(run);
  const double trained = run.roles[0].all_phase_seconds();
  for (RoleRecord& r : run.roles) {
    const double used = r.resource("cpu_percent").mean;
    std::string monitor = "time,seconds,cpu_percent\n";
    for (int i = 1; i <= 40; ++i) {
      const double seconds = i * trained / 20;
      monitor += fmt::format("{},{},{}\n", 1e6 + seconds, seconds, i <= 20 ? 1 : used);
    }
    r.monitor = CsvTable::parse(monitor, "monitor.csv");
    r.phase_log = CsvTable::parse(fmt::format("seconds\n{}\n", 2 * trained), "phases.csv");
    r.resources["cpu_percent"].mean = (used + 1) / 2;
  }
  const Fit late = fit(run);
  ASSERT_TRUE(at_once.there() && late.there());
  const auto computing = [](const Fit& model) {
    return model.training.workers[0].work.forward + model.training.workers[0].work.backward;
  };
  EXPECT_NEAR(computing(late), computing(at_once), 0.02 * computing(at_once));
  EXPECT_NEAR(late.training.costs.message, at_once.training.costs.message, 0.02 * at_once.training.costs.message);
}

TEST(Why, TheServerOfASingleWorkerIsPartOfTheModel) {
  Training training = cluster_of(1, 1.25e8, 1);
  RunRecord run = recorded(training);
  run.roles.front().role = "worker:0";
  run.roles.front().summary.texts["strategy"] = "ps";
  run.nodes = {{.name = "node1", .address = "", .cores = 1, .rate = 1e9, .delay_seconds = 0, .roles = {"ps:0"}},
               {.name = "node2", .address = "", .cores = 1, .rate = 1e9, .delay_seconds = 0, .roles = {"worker:0"}}};
  const Fit model = fit(run);
  ASSERT_TRUE(model.there()) << model.missing;
  EXPECT_EQ(model.training.servers.size(), 1);
  EXPECT_GT(model.prediction.mean().exchange(), 0.5 * predict::simulate(training, {.steps = 60}).mean().exchange());
}

/// Steps of a tenth of a millisecond on nodes with quotas, whose pauses fall into one phase.
TEST(Why, PausesOfAQuotaAreNotTakenForSlowMessages) {
  Training training = cluster_of(1, 1.25e9, 0.4);
  constexpr double kCheckpoint = 5e-5;
  training.tensors = predict::even_tensors(1000);
  for (predict::Worker& worker : training.workers) worker.work = {.forward = 3e-5, .backward = 4e-5, .rest = 1e-6};
  training.costs = {.message = 1e-5, .byte = 1e-10, .wake = 5e-6, .add = 0, .update = 1e-5, .update_byte = 0};
  RunRecord run = recorded(training);
  Training calm = training;
  for (predict::Node& node : calm.nodes) {
    node.cores = 1;
    node.quota_period = 0;
  }
  const predict::WorkerTimes usual = predict::simulate(calm, {.steps = 60}).workers[0];
  const double step = predict::simulate(training, {.steps = 60}).step;
  RoleRecord& worker = run.roles.front();
  worker.role = "worker:0";
  worker.summary.texts["strategy"] = "ps";
  const std::map<std::string, double> medians{
      {"forward", usual.forward}, {"backward", usual.backward}, {"push", usual.push}, {"pull", usual.pull}};
  for (PhaseTotals& phase : worker.phases) {
    const auto found = medians.find(phase.name);
    phase.p50 = phase.mean = found == medians.end() ? 0 : found->second;
    if (phase.name == "pull") phase.mean += step - usual.all();  // all pauses
    if (phase.name == "checkpoint") phase.p50 = phase.mean = kCheckpoint;
    phase.seconds = phase.mean * 1000;
  }
  const double used = worker.resources["cpu_percent"].mean / 100 * step + kCheckpoint;
  worker.resources["cpu_percent"].mean = 100 * used / (step + kCheckpoint);
  run.nodes = {{.name = "node1", .address = "", .cores = 0.4, .rate = 1e10, .delay_seconds = 0, .roles = {"ps:0"}},
               {.name = "node2", .address = "", .cores = 0.4, .rate = 1e10, .delay_seconds = 0, .roles = {"worker:0"}}};
  const Fit model = fit(run);
  ASSERT_TRUE(model.there()) << model.missing;
  EXPECT_LT(model.training.costs.wake, 3e-5);
  EXPECT_LT(model.unexplained, 0.1);
  EXPECT_NEAR(model.training.workers[0].work.forward, 3e-5, 1e-6);
  EXPECT_LT(model.training.workers[0].exchange, 2e-5) << "a checkpoint's CPU time is none of messages";
  for (PhaseTotals& phase : worker.phases) {
    if (phase.name == "pull") phase.p50 = kUnknown;
  }
  const Fit less = fit(run);
  EXPECT_TRUE(known(less.training.costs.wake)) << "a median that was not recorded spoils nothing";
  EXPECT_LT(less.unexplained, 0.1);
}

TEST(Why, ASmallBatch) {
  Training training = cluster_of(2, 1.25e9);
  training.batch = 1;
  training.tensors = predict::even_tensors(1000);
  for (predict::Node& node : training.nodes) node.cores = 2;
  for (predict::Worker& worker : training.workers) worker.work = {.forward = 2e-5, .backward = 3e-5, .rest = 1e-5};
  const Diagnosis why = checked(recorded(training));
  EXPECT_EQ(why.cause, "batch") << why.headline;
  EXPECT_THAT(why.headline, HasSubstr("are the same at any batch."));
  EXPECT_THAT(text_of(why), HasSubstr("With twice the batch (now 1) an example would take "));
}

TEST(Why, TheFixedPartOfComputingIsKnownFromEvaluations) {
  RunRecord run = run_of({role("process", {{"forward", 1}, {"backward", 2}})});
  run.settings = {{"batch", "1"}, {"eval_batch", "500"}};
  EXPECT_EQ(checked(run).cause, "compute");
  // 10 us an example in an evaluation, a hundredth of a step's forward pass; the first ones are slower.
  run.roles[0].evals = CsvTable::parse("examples,eval_seconds\n1000,0.05\n1000,0.02\n1000,0.01\n", "evals.csv");
  const Diagnosis why = checked(run);
  EXPECT_EQ(why.cause, "batch");
  EXPECT_NEAR(why.causes.front().cost, 0.99, 0.001);
  // A short evaluation is compared by its own examples; rows without a time do not hide the others.
  run.roles[0].evals = CsvTable::parse("examples,eval_seconds\n10,\n1000,0.5\n1000,0.5\n10,0.005\n10,0\n", "evals.csv");
  EXPECT_NEAR(fit(run).fixed_compute, 0.5, 0.001);
}

TEST(Why, MoreThreadsThanCores) {
  Training training = alone();
  training.workers[0].work.threads = 8;
  const Diagnosis why = checked(recorded(training));
  EXPECT_EQ(why.cause, "threads");
  EXPECT_THAT(why.headline, HasSubstr("process computes with 8 threads on 2 cores, which can cost up to"));
  EXPECT_THAT(why.suggestions, Contains("Use --threads 2."));
}

TEST(Why, MoreRolesThanCores) {
  const std::map<std::string, double> busy{{"cpu_percent", 66}, {"node_cpu_percent", 99}};
  RunRecord run = run_of({with(role("worker:0", {{"forward", 5}, {"pull", 5}}), busy),
                          with(role("worker:1", {{"forward", 5}, {"pull", 5}}), busy), with(role("ps:0", {}), busy)});
  for (RoleRecord& r : run.roles) r.summary.numbers["resources.cores"] = 2;
  run.roles[0].summary.numbers["parameters"] = 1e4;
  const Diagnosis why = checked(run);
  EXPECT_EQ(why.cause, "cpu") << why.headline;
  EXPECT_THAT(why.headline, HasSubstr("3 roles with 3 threads share 2 cores."));
  for (RoleRecord& r : run.roles) r.summary.numbers["resources.cores"] = 8;
  EXPECT_THAT(text_of(checked(run)), Not(HasSubstr("threads share")));
}

TEST(Why, WhatIsNotExplainedIsNotAscribedToShortEvaluations) {
  Training training = cluster_of(2, 1.25e9);
  training.evaluation = 0.001;
  RunRecord run = recorded(training);
  for (RoleRecord& r : run.roles) {
    for (PhaseTotals& phase : r.phases) {
      if (phase.name == "pull") phase.seconds += 100;
    }
  }
  // On half a core, evaluations keep the steps after them from as much time as they took themselves.
  for (const Cause& cause : checked(run).causes) {
    if (cause.cause == "evaluation") {
      EXPECT_LT(cause.cost, 0.05);
    }
  }
}

TEST(Why, WhatTheModelDoesNotExplainIsSaid) {
  Training training = cluster_of(2, 1.25e9);
  RunRecord run = recorded(training);
  for (RoleRecord& r : run.roles) {
    for (PhaseTotals& phase : r.phases) {
      if (phase.name == "pull") phase.seconds += 100;  // of a second in every ten steps: no link or server is that slow
    }
  }
  const Diagnosis why = checked(run);
  EXPECT_EQ(why.cause, "unexplained");
  EXPECT_GT(why.unexplained, 0.5);
  EXPECT_THAT(text_of(why), HasSubstr("The model of the run fits it badly"));
  for (const Cause& cause : why.causes) {
    if (cause.cause == "compute") {
      EXPECT_LT(cause.cost, 1.01 - why.unexplained) << "both are shares of the same step";
    }
  }
}

TEST(Why, ReplicasOfOneProcess) {
  RunRecord run = run_of({role("replica 0", {{"forward", 3}, {"backward", 3}, {"transfer", 9}})});
  run.settings.insert(run.settings.end(), {{"replicas", "2"}, {"accumulate", "1"}});
  run.roles[0].summary.numbers["communication.bytes_per_step"] = 2e6;
  run.roles[0].summary.texts["strategy"] = "allreduce";
  const Diagnosis why = checked(run);
  EXPECT_THAT(text_of(why), HasSubstr("The phases are those of replica 0 of 2; all compute alike."));
  // Each example costs the time of its replica.
  const Comparison cost = compare(run, run_of({role("process", {{"forward", 3}, {"backward", 3}})}));
  ASSERT_FALSE(cost.phases.empty());
  EXPECT_EQ(cost.phases[0].phase, "transfer");
  EXPECT_DOUBLE_EQ(cost.phases[0].now, 9.0 / 100000);
}

TEST(Why, AWorkerWithoutAStepIsNotTakenForAFastOne) {
  const Diagnosis why = checked(
      run_of({role("worker:0", {{"forward", 2}, {"others", 30}}), role("worker:1", {{"others", 2}, {"rest", 1e-5}})}));
  EXPECT_THAT(text_of(why), HasSubstr("worker:1 joined too late: it computed 0 steps."));
}

TEST(Why, AQuota) {
  const Phases phases{{"forward", 5}, {"pull", 5}};
  RunRecord run = run_of({role("worker:0", phases), role("worker:1", phases), role("ps:0", {})});
  run.settings.emplace_back("cpu_quota", "0.25");
  run.throttling = {{"worker:0", {100, 20, 2}}, {"worker:1", {100, 80, 7}}, {"ps:0", {100, 1, 0.1}}};
  const Diagnosis why = checked(run);
  EXPECT_EQ(why.cause, "quota");
  EXPECT_EQ(why.headline, "The CPU quota cost 70 % of each step.");
  EXPECT_EQ(why.sentences[0],
            "worker:1 was held back by its CPU quota of 0.25 cores for 70 % of the time, in 80 of 100 periods.");
  EXPECT_THAT(why.suggestions, Contains(HasSubstr("--cpu-quota than 0.25")));
  run.throttling["worker:1"].seconds = 0.2;
  EXPECT_NE(checked(run).cause, "quota");
  run.throttling["worker:1"].seconds = kUnknown;
  EXPECT_NE(checked(run).cause, "quota") << "a damaged throttling.json proves nothing";
}

TEST(Why, SaysThatAnotherProgramHasNoPhases) {
  for (const double steps : {0.0, 1000.0}) {
    RunRecord run = run_of({role("process", {})}, steps);
    run.settings = {{"command", "python3 train.py"}};
    const Diagnosis why = diagnose(run);
    EXPECT_EQ(why.cause, "unknown");
    EXPECT_EQ(why.headline, "What limited this run is not known: another program made it.");
    EXPECT_THAT(why.suggestions, IsEmpty()) << "neither longer training nor another version would help";
  }
}

TEST(Why, StolenCpuIsThatOfOtherPrograms) {
  RunRecord run = run_of({with(role("process", {{"forward", 9}, {"rest", 1}}),
                               {{"cpu_percent", 60}, {"node_cpu_percent", 60}, {"node_steal_percent", 40}})});
  run.roles[0].summary.numbers["resources.cores"] = 1;
  EXPECT_EQ(checked(run).cause, "programs");
}

TEST(Fit, SaysWhatARunLacks) {
  EXPECT_EQ(fit(run_of({role("process", {})})).missing, "it recorded no phases of its steps (phases.csv)");
  EXPECT_EQ(fit(run_of({role("process", {{"forward", 1}}, 1)}, 1)).missing,
            "its workers recorded fewer than two steps");
}

TEST(Fit, GivesBackTheTrainingThatARunIsLike) {
  Training training = cluster_of(3, 1.25e8, 1);
  training.workers[1].work.forward = 0.006;
  training.costs.message *= 2;
  training.costs.byte *= 2;
  training.costs.add *= 2;
  training.costs.update *= 2;
  training.costs.update_byte *= 2;
  const Fit found = fit(recorded(training));
  ASSERT_TRUE(found.there()) << found.missing;
  EXPECT_LT(found.unexplained, 0.03);
  EXPECT_NEAR(found.training.workers[1].work.forward, 0.006, 0.0004);
  EXPECT_NEAR(found.training.workers[0].work.backward, 0.007, 0.0005);
  EXPECT_NEAR(found.training.costs.message, training.costs.message, 0.2 * training.costs.message);
  // It also says what a cluster would do that it was not fitted to.
  Training slower = training;
  Training guess = found.training;
  for (Training* changed : {&slower, &guess}) {
    for (predict::Node& node : changed->nodes) node.link.rate = 5e6;
  }
  const double truth = predict::simulate(slower).step;
  EXPECT_NEAR(predict::simulate(guess).step, truth, 0.05 * truth);
}

TEST(Fit, AShortPhaseOfANodeWithAQuotaTakesItsMedian) {
  // Passes are longer than a period, so pauses fall anywhere; a few of them into the optimizer, which is short.
  Training training = cluster_of(1, 1.25e9, 0.4);
  training.strategy = predict::Strategy::all_reduce;
  training.servers.clear();
  training.nodes.front() = training.nodes.back();
  training.workers.push_back({.node = 0, .work = training.workers[0].work});
  for (predict::Worker& worker : training.workers) worker.work.optimizer = 8e-4;
  RunRecord run = recorded(training);
  for (RoleRecord& role : run.roles) {
    for (PhaseTotals& phase : role.phases) {
      if (phase.name != "optimizer") continue;
      phase.p50 = 8e-4;
      phase.mean = 2e-3;
      phase.seconds = phase.mean * 1000;
    }
  }
  const Fit model = fit(run);
  ASSERT_TRUE(model.there()) << model.missing;
  EXPECT_NEAR(model.training.workers[0].work.optimizer, 8e-4, 1e-6);
  EXPECT_NEAR(model.training.workers[1].work.optimizer, 8e-4, 1e-6);
}

TEST(Why, ShortOfMemory) {
  const Diagnosis why = checked(run_of({with(role("process", {{"forward", 9}}), {{"major_faults", 340}})}));
  EXPECT_EQ(why.cause, "memory");
  EXPECT_THAT(why.sentences[0], HasSubstr("process waited for 340 pages a second"));
  RunRecord full = run_of({with(role("process", {{"forward", 9}}), {{"node_memory_used", 7.6e9}, {"rss_bytes", 7e9}})});
  full.roles[0].summary.numbers["resources.memory_bytes"] = 8e9;
  EXPECT_THAT(text_of(checked(full)),
              HasSubstr("95 % of the 8.0 GB of memory where process ran were in use at the peak, 7.0 GB by it"));
}

TEST(Why, AFewSamplesProveNothing) {
  RunRecord run = run_of({with(role("process", {{"forward", 9}}), {{"major_faults", 340}})});
  run.roles[0].samples = 2;
  EXPECT_EQ(checked(run).cause, "compute");
}

TEST(Why, WorkersThatDiedAreSaid) {
  RunRecord run = run_of({role("worker:0", {{"forward", 9}}), role("worker:1", {{"forward", 9}})});
  run.roles[0].summary.workers[1].restarts = 2;
  run.roles[0].summary.workers[1].dropped = 250;
  run.roles[0].summary.workers[1].updates = 750;
  run.roles[1].has_summary = false;
  run.roles[1].steps = CsvTable::parse("step\n480\n", "steps.csv");
  const std::string text = text_of(checked(run));
  EXPECT_THAT(text, HasSubstr("worker:1 died and was restarted 2 times."));
  EXPECT_THAT(text, HasSubstr("250 of 1,000 gradients of worker:1 came too late and were dropped (25 %)."));
  EXPECT_THAT(text, HasSubstr("worker:1 left no summary: it was killed or died after step 480."));
}

TEST(Why, ShortRunsAreToldSo) {
  const Diagnosis why = checked(run_of({role("process", {{"forward", 9}}, 12)}, 12));
  EXPECT_EQ(why.cause, "short");
  EXPECT_EQ(why.headline, "Too short to tell: 12 steps.");
}

TEST(Why, OldRunsAreJudgedByWhatTheyHave) {
  RunRecord run = run_of({role("worker:0", {}), role("worker:1", {})});
  auto& summary = run.roles[0].summary;
  summary.numbers["aside_seconds"] = 1;
  summary.workers[0].wait_share = 0.7;
  summary.workers[1].wait_share = 0.05;
  const Diagnosis waiting = checked(run);
  EXPECT_THAT(text_of(waiting),
              HasSubstr("Workers waited 38 % of their time for parameters or for each other (worker:0 70 "
                        "%, worker:1 5.0 %)."));
  EXPECT_THAT(text_of(waiting), AllOf(HasSubstr("Evaluations and checkpoints took 10 % of 10.0 s."),
                                      HasSubstr("no phases of its 1,000 steps")));
  summary.workers[0].compute_seconds = 1;
  summary.workers[1].compute_seconds = 3;
  summary.stragglers = {"worker:1 was slow from step 20 on"};
  const Diagnosis slow = checked(run);
  EXPECT_EQ(slow.headline, "Waiting for worker:1 limited this run.");
  EXPECT_THAT(text_of(slow),
              HasSubstr("worker:1 computes 3.0 times as long as the others: 3.00 ms against 1.00 ms per step."));
  EXPECT_EQ(slow.evidence.back().what, "worker:1 was slow from step 20 on");
}

TEST(Compare, SaysWhatDistributionCost) {
  RunRecord one = run_of({role("process", {{"forward", 4}, {"backward", 6}})});
  one.name = "lr-0";
  one.roles[0].summary.numbers["examples_per_second"] = 10000;
  one.roles[0].summary.numbers["test_accuracy"] = 0.91;
  const Phases phases{{"forward", 2}, {"backward", 3}, {"pull", 6}, {"others", 2}};
  RunRecord two = run_of({role("worker:0", phases), role("worker:1", phases), role("ps:0", {})});
  for (WorkerRow& row : two.roles[0].summary.workers) row.examples = 50000;
  two.roles[0].summary.numbers["examples_per_second"] = 15000;
  two.roles[0].summary.numbers["test_accuracy"] = 0.9;
  const Comparison cost = compare(two, one);
  EXPECT_DOUBLE_EQ(cost.speed_up, 1.5);
  EXPECT_DOUBLE_EQ(cost.efficiency.value, 0.75);
  EXPECT_EQ(cost.headline,
            "2 workers: 1.5 times as fast as lr-0 (1 worker), an efficiency of 75 % per core (2 cores against 1).");
  ASSERT_FALSE(cost.phases.empty());
  EXPECT_EQ(cost.phases[0].phase, "pull");
  EXPECT_DOUBLE_EQ(cost.phases[0].now, 12.0 / 100000);
  EXPECT_THAT(cost.sentences, Contains("An example costs 0.26 ms of worker time, against 0.10 ms in the baseline."));
  EXPECT_THAT(cost.sentences, Contains("The lost time went to: pull 75 % (+0.12 ms), others 25 % (+40.0 us)."));
  EXPECT_THAT(cost.sentences, Contains("Test accuracy is 90.00 % against 91.00 % (-1.00 points)."));
}

TEST(Compare, EfficiencyIsPerCoreUsedOrPerNode) {
  RunRecord one = run_of({role("process", {})});
  one.roles[0].summary.numbers["examples_per_second"] = 10000;
  one.roles[0].summary.numbers["threads"] = 2;
  RunRecord two = run_of({role("worker:0", {}), role("worker:1", {}), role("ps:0", {})});
  two.roles[0].summary.numbers["examples_per_second"] = 9000;
  for (RoleRecord& role : two.roles) role.summary.numbers["threads"] = 1;
  const Efficiency same = efficiency_of(two, one);
  EXPECT_DOUBLE_EQ(same.value, 0.9) << "two workers of a thread use the cores of one process with two threads";
  EXPECT_EQ(same.unit, "core");

  two.roles[1].host = "elsewhere";
  const Efficiency hosts = efficiency_of(two, one);
  EXPECT_EQ(hosts.unit, "node");
  EXPECT_DOUBLE_EQ(hosts.value, 0.45);

  two.roles[1].host.clear();
  const auto node = [](const char* holds) {
    NodeRecord record;
    record.name = std::string("node of ") + holds;
    record.cores = 0.5;
    record.roles = {holds};
    return record;
  };
  two.nodes = {node("worker:0"), node("worker:1")};
  one.nodes = {node("process")};
  EXPECT_EQ(efficiency_of(two, one).unit, "node");
  one.nodes[0].cores = 1;
  const Efficiency unequal = efficiency_of(two, one);
  EXPECT_EQ(unequal.unit, "core") << "nodes of two sizes cannot be counted";
  EXPECT_DOUBLE_EQ(unequal.value, 0.9);

  for (RoleRecord& role : two.roles) role.summary.numbers.erase("threads");
  two.nodes.clear();
  EXPECT_EQ(efficiency_of(two, one).unit, "worker");
}

TEST(Compare, PhasesOfAResumedRunAreOfItsLastSession) {
  RunRecord one = run_of({role("process", {{"forward", 4}})});
  RunRecord resumed = run_of({role("process", {{"forward", 2}}, 500)});  // 1000 steps in all
  const Comparison cost = compare(resumed, one);
  ASSERT_EQ(cost.phases.size(), 1);
  EXPECT_DOUBLE_EQ(cost.phases[0].now, cost.phases[0].before);
}

TEST(Compare, RunsWithoutPhasesAreComparedBySpeedAlone) {
  RunRecord one = run_of({role("process", {})});
  RunRecord two = run_of({role("worker:0", {}), role("worker:1", {})});
  const Comparison unknown = compare(two, one);
  EXPECT_EQ(unknown.headline, "One of the two runs did not record its throughput.");
  EXPECT_THAT(unknown.phases, IsEmpty());
  EXPECT_THAT(unknown.sentences, Contains(HasSubstr("The phases cannot be compared")));
  EXPECT_THAT(unknown.sentences, Not(Contains(HasSubstr("Test accuracy"))));
}

}  // namespace
}  // namespace lockstep::records
