#include "records/why.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>

namespace lockstep::records {
namespace {

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

TEST(Why, Computing) {
  const Diagnosis why =
      checked(run_of({role("process", {{"data", 0.2}, {"forward", 3}, {"backward", 6}, {"rest", 0.8}})}));
  EXPECT_EQ(why.cause, "compute");
  EXPECT_EQ(why.headline, "Computing limited this run.");
  EXPECT_EQ(
      why.sentences[0],
      "Computing took 90 % of the time, 9.00 ms of 10.0 ms per step: forward 30 %, backward 60 %, optimizer 0 %.");
  EXPECT_EQ(why.sentences.size(), 1) << text_of(why);
}

TEST(Why, ComputingOnAMachineWithIdleCores) {
  const Diagnosis why =
      checked(run_of({with(role("process", {{"forward", 3}, {"backward", 6}}), {{"node_cpu_percent", 26}})}));
  EXPECT_EQ(why.cause, "compute");
  EXPECT_THAT(why.suggestions, Contains(AllOf(HasSubstr("26 % busy"), HasSubstr("--threads (now 1)"))));
}

TEST(Why, Data) {
  const Diagnosis why = checked(run_of({role("worker:0", {{"data", 5}, {"forward", 3}, {"backward", 2}}),
                                        role("worker:1", {{"data", 7}, {"forward", 2}, {"backward", 1}})}));
  EXPECT_EQ(why.cause, "data");
  EXPECT_EQ(why.sentences[0],
            "Waiting for batches took 60 % of the time, 6.00 ms of 10.0 ms per step; most at worker:1, 70 %.");
}

TEST(Why, AServerAtItsLimitIsNamed) {
  const Phases phases{{"forward", 2}, {"backward", 2}, {"push", 2}, {"pull", 14}};
  const Diagnosis why = checked(run_of(
      {role("worker:0", phases), role("worker:1", phases),
       with(role("ps:0", {{"apply", 1}}), {{"cpu_percent", 40}, {"wire_received", 1e8}, {"wire_sent", 1e8}}),
       with(role("ps:1", {{"apply", 9}}), {{"cpu_percent", 97}, {"wire_received", 3e8}, {"wire_sent", 3.1e8}})}));
  EXPECT_EQ(why.cause, "servers");
  EXPECT_EQ(why.headline, "The parameter server ps:1 limited this run.");
  EXPECT_THAT(why.sentences[0], AllOf(HasSubstr("80 % of the time, 16.0 ms of 20.0 ms per step: push 10 %, pull 70 %"),
                                      HasSubstr("ps:1 used 97 % of a core, 300 MB/s in and 310 MB/s out")));
  EXPECT_THAT(why.suggestions, Contains(HasSubstr("--ps 3")));
}

TEST(Why, AFullNetwork) {
  const Phases phases{{"forward", 2}, {"backward", 2}, {"push", 8}, {"pull", 8}};
  const Diagnosis why = checked(run_of({role("worker:0", phases), role("worker:1", phases),
                                        with(role("ps:0", {}), {{"cpu_percent", 30},
                                                                {"wire_received", 1.1e8},
                                                                {"wire_sent", 1.1e8},
                                                                {"net_received", 1.17e8},
                                                                {"net_sent", 1.16e8}})}));
  EXPECT_EQ(why.cause, "network");
  EXPECT_THAT(why.sentences[0], HasSubstr("0.94 Gbit/s, about what a link of 1 Gbit/s carries"));
  EXPECT_THAT(why.suggestions, Contains(HasSubstr("--wire bf16")));
}

TEST(Why, AnIdleServerIsNotBlamed) {
  const Phases phases{{"forward", 5}, {"backward", 5}, {"push", 8}, {"pull", 8}};
  const Diagnosis why =
      checked(run_of({role("worker:0", phases), role("worker:1", phases),
                      with(role("ps:0", {}), {{"cpu_percent", 12}, {"wire_received", 2e6}, {"wire_sent", 2e6}})}));
  EXPECT_EQ(why.cause, "exchange");
  EXPECT_THAT(why.sentences[0], HasSubstr("ps:0 was not busy (12 % of a core, 2.0 MB/s in and 2.0 MB/s out)"));
}

TEST(Why, AllReduce) {
  RunRecord run = run_of({role("worker:0", {{"forward", 2}, {"backward", 2}, {"transfer", 16}}),
                          role("worker:1", {{"forward", 2}, {"backward", 2}, {"transfer", 16}})});
  run.roles[0].summary.numbers["communication.bytes_per_step"] = 2e6;
  const Diagnosis why = checked(run);
  EXPECT_EQ(why.cause, "network");
  EXPECT_EQ(
      why.sentences[0],
      "All-reduce took 80 % of the time, 16.0 ms of 20.0 ms per step, without the part hidden behind computing; 2.0 MB "
      "were sent per step, at 125 MB/s.");
  EXPECT_THAT(why.suggestions, Contains(HasSubstr("--wire bf16")));
  // While the transfer is hidden, it still sends.
  run.roles[0].summary.numbers["communication.transfer_seconds"] = 20;
  run.settings.emplace_back("wire", "bf16");
  const Diagnosis hidden = checked(run);
  EXPECT_THAT(hidden.sentences[0], HasSubstr("at 100 MB/s."));
  EXPECT_THAT(hidden.suggestions, Not(Contains(HasSubstr("--wire"))));
}

TEST(Why, ReplicasOfOneProcess) {
  RunRecord run = run_of({role("replica 0", {{"forward", 3}, {"backward", 3}, {"transfer", 9}})});
  run.settings.insert(run.settings.end(), {{"replicas", "2"}, {"accumulate", "1"}});
  run.roles[0].summary.numbers["communication.bytes_per_step"] = 2e6;
  run.roles[0].summary.texts["strategy"] = "allreduce";
  const Diagnosis why = checked(run);
  EXPECT_EQ(why.headline, "Adding up the replicas' gradients limited this run.");
  EXPECT_THAT(text_of(why), HasSubstr("The phases are those of replica 0 of 2; all compute alike."));
  EXPECT_THAT(why.suggestions, AllOf(Not(IsEmpty()), Not(Contains(HasSubstr("--wire")))));
  // Each example costs the time of its replica.
  const Comparison cost = compare(run, run_of({role("process", {{"forward", 3}, {"backward", 3}})}));
  ASSERT_FALSE(cost.phases.empty());
  EXPECT_EQ(cost.phases[0].phase, "transfer");
  EXPECT_DOUBLE_EQ(cost.phases[0].now, 9.0 / 100000);
}

TEST(Why, TheSlowWorkerIsNamed) {
  const Phases fast{{"forward", 5}, {"backward", 5}, {"others", 14}};
  const Diagnosis why =
      checked(run_of({role("worker:0", fast), role("worker:1", fast),
                      role("worker:2", {{"forward", 12}, {"backward", 12}}), role("worker:3", fast)}));
  // Computing takes more than half of all time, but nearly as much would be saved without the straggler.
  EXPECT_EQ(why.cause, "others");
  EXPECT_EQ(why.headline, "Waiting for worker:2 limited this run.");
  EXPECT_THAT(why.suggestions, Not(Contains(HasSubstr("--threads"))));
  EXPECT_THAT(text_of(why), HasSubstr("They waited for worker:2, which takes 2.4 times as long as the others: 24.0 ms "
                                      "against 10.0 ms per step."));
  const Phases faster{{"forward", 2}, {"backward", 2}, {"others", 20}};
  const Diagnosis worse =
      checked(run_of({role("worker:0", faster), role("worker:1", faster),
                      role("worker:2", {{"data", 20}, {"forward", 2}, {"backward", 2}}), role("ps:0", {})}));
  EXPECT_EQ(worse.cause, "others");
  EXPECT_EQ(worse.headline, "Waiting for worker:2 limited this run.");
  EXPECT_THAT(worse.sentences[0], HasSubstr("worker:2, which waits for data and takes 6.0 times as long"));
  EXPECT_THAT(worse.suggestions, Contains(HasSubstr("--aggregate 2")));
}

TEST(Why, AWorkerWithoutAStepIsNotTakenForAFastOne) {
  const Diagnosis why = checked(
      run_of({role("worker:0", {{"forward", 2}, {"others", 30}}), role("worker:1", {{"others", 2}, {"rest", 1e-5}})}));
  EXPECT_EQ(why.headline, "Waiting for other workers limited this run.");
  EXPECT_THAT(text_of(why), HasSubstr("worker:1 joined too late: it computed 0 steps."));
}

TEST(Why, WithoutWaitingForEachOtherASlowWorkerIsNoLimit) {
  const Phases fast{{"forward", 10}, {"others", 1}};
  RunRecord run =
      run_of({role("worker:0", fast), role("worker:1", fast), role("worker:2", {{"forward", 24}}), role("ps:0", {})});
  run.settings.emplace_back("mode", "async");
  EXPECT_EQ(checked(run).cause, "compute");
}

TEST(Why, WhoIsLongAtPushingIsSlowToo) {
  const Phases fast{{"forward", 4}, {"push", 1}, {"others", 9}};
  const Diagnosis why = checked(run_of({role("worker:0", fast), role("worker:1", {{"forward", 4}, {"push", 10}})}));
  EXPECT_THAT(text_of(why), HasSubstr("They waited for worker:1, which takes 2.8 times as long"));
}

TEST(Why, WhoWaitsLeastIsTheOneTheOthersWaitFor) {
  const Diagnosis why = checked(run_of({role("worker:0", {{"forward", 5}, {"pull", 1}, {"others", 12}}),
                                        role("worker:1", {{"forward", 5}, {"pull", 11}, {"others", 2}})}));
  EXPECT_THAT(text_of(why), AllOf(HasSubstr("worker:1 waited least, 11 % of its time against up to 67 %"),
                                  Not(HasSubstr("take turns"))));
}

TEST(Why, NobodyIsSlowWhenAllTakeTheSame) {
  const Phases same{{"forward", 2}, {"backward", 2}, {"others", 16}};
  const Diagnosis why = checked(run_of({role("worker:0", same), role("worker:1", same)}));
  EXPECT_EQ(why.headline, "Waiting for other workers limited this run.");
  EXPECT_THAT(why.sentences[0], HasSubstr("they take turns"));
  EXPECT_THAT(why.suggestions, Not(Contains(HasSubstr("--mode async")))) << "all-reduce has none";
}

TEST(Why, ASmallBatch) {
  // 1 ms per step, of which 0.2 ms is computing.
  const Phases phases{{"forward", 0.1}, {"backward", 0.1}, {"push", 0.1}, {"pull", 0.6}, {"rest", 0.1}};
  const Diagnosis why = checked(run_of({role("worker:0", phases), role("worker:1", phases)}));
  EXPECT_EQ(why.cause, "batch");
  EXPECT_EQ(
      why.sentences[0],
      "A step takes 1.00 ms, of which 0.80 ms (80 %) are fixed: exchanging, waiting and the rest, at any batch (now "
      "100). With four times the batch the fixed part would be about 50 %.");
}

TEST(Why, ASmallBatchIsOneWithLittleToComputeHoweverSlowTheMachineIs) {
  const Phases phases{{"forward", 10}, {"backward", 10}, {"push", 10}, {"pull", 60}, {"rest", 10}};
  EXPECT_EQ(checked(run_of({role("worker:0", phases), role("worker:1", phases)})).cause, "batch");
}

TEST(Why, EvaluationsAndCheckpoints) {
  const Diagnosis why = checked(run_of({role("process", {{"forward", 3}, {"evaluation", 6}, {"checkpoint", 1}})}));
  EXPECT_EQ(why.cause, "aside");
  EXPECT_EQ(why.sentences[0], "Evaluations took 60 % of the time and checkpoints 10 %, 7.0 s in all.");
  EXPECT_THAT(why.suggestions, Contains(AllOf(HasSubstr("--eval-every"), Not(HasSubstr("--evaluator")))));
  const Phases phases{{"forward", 3}, {"evaluation", 6}};
  EXPECT_THAT(checked(run_of({role("worker:0", phases), role("ps:0", {})})).suggestions,
              Contains(HasSubstr("--evaluator")));
  EXPECT_THAT(checked(run_of({role("worker:0", phases), role("ps:0", {}), role("evaluator:0", {})})).suggestions,
              Not(Contains(HasSubstr("--evaluator"))));
}

TEST(Why, MoreRolesThanCores) {
  const std::map<std::string, double> busy{
      {"cpu_percent", 66}, {"node_cpu_percent", 99}, {"involuntary_switches", 900}};
  RunRecord run = run_of({with(role("worker:0", {{"forward", 5}, {"pull", 5}}), busy),
                          with(role("worker:1", {{"forward", 5}, {"pull", 5}}), busy), with(role("ps:0", {}), busy)});
  for (RoleRecord& r : run.roles) r.summary.numbers["resources.cores"] = 2;
  const Diagnosis why = checked(run);
  EXPECT_EQ(why.cause, "cpu");
  EXPECT_EQ(why.headline, "The CPU of the machine, shared by 3 roles, limited this run.");
  EXPECT_THAT(why.sentences[0], HasSubstr("99 % busy with 3 roles and 3 threads"));
  for (RoleRecord& r : run.roles) r.summary.numbers["resources.cores"] = 8;
  EXPECT_THAT(text_of(checked(run)), Not(HasSubstr("threads that compute")));
}

TEST(Why, OtherProgramsAreBlamedForWhatTheyUse) {
  const std::map<std::string, double> crowded{{"cpu_percent", 10}, {"node_cpu_percent", 100}};
  RunRecord two = run_of({with(role("worker:0", {{"forward", 5}, {"pull", 5}}), crowded),
                          with(role("worker:1", {{"forward", 5}, {"pull", 5}}), crowded)});
  for (RoleRecord& r : two.roles) r.summary.numbers["resources.cores"] = 2;
  const Diagnosis why = checked(two);
  EXPECT_EQ(why.headline, "Other programs on the machine limited this run.");
  EXPECT_THAT(why.sentences[0], HasSubstr("other programs used 90 % of the node, the 2 roles of this run 10 %."));
  for (RoleRecord& r : two.roles) r.summary.numbers["resources.cores"] = 1;
  EXPECT_THAT(text_of(checked(two)), Not(HasSubstr("threads that compute")));

  RunRecord one = run_of({with(role("process", {{"forward", 9}}), {{"cpu_percent", 60}, {"node_cpu_percent", 98}})});
  one.roles[0].summary.numbers["resources.cores"] = 1;
  const Diagnosis alone = checked(one);
  EXPECT_EQ(alone.cause, "compute");
  EXPECT_THAT(text_of(alone),
              HasSubstr("The only core of the machine was 98 % busy: other programs used 38 % of the node, the "
                        "process of this run 60 %."));
  one.roles[0].resources["cpu_percent"] = {96, 96, 96, 96};
  EXPECT_THAT(text_of(checked(one)), Not(HasSubstr("other programs")));
}

TEST(Why, AQuota) {
  const Phases phases{{"forward", 5}, {"pull", 5}};
  RunRecord run = run_of({role("worker:0", phases), role("worker:1", phases), role("ps:0", {})});
  run.settings.emplace_back("cpu_quota", "0.25");
  run.throttling = {{"worker:0", {100, 20, 2}}, {"worker:1", {100, 80, 7}}, {"ps:0", {100, 1, 0.1}}};
  const Diagnosis why = checked(run);
  EXPECT_EQ(why.cause, "quota");
  EXPECT_EQ(why.sentences[0],
            "worker:1 was held back by its CPU quota of 0.25 cores for 70 % of the time, in 80 of 100 periods.");
  EXPECT_THAT(why.suggestions, Contains(HasSubstr("--cpu-quota than 0.25")));
  run.throttling["worker:1"].seconds = 0.2;
  EXPECT_NE(checked(run).cause, "quota");
}

TEST(Why, TheCoresOfAnEmulatedNodeAreItsSizeAndNoReason) {
  const Phases phases{{"forward", 6}, {"pull", 4}};
  RunRecord run = run_of({role("worker:0", phases), role("worker:1", phases), role("ps:0", {})});
  run.throttling = {{"worker:0", {100, 80, 7}}, {"worker:1", {100, 80, 7}}};
  EXPECT_EQ(checked(run).cause, "quota");
  run.nodes = {{.name = "node1", .address = "", .cores = 0.5, .roles = {"worker:0"}},
               {.name = "node2", .address = "", .cores = 0.5, .roles = {"worker:1"}}};
  EXPECT_EQ(checked(run).cause, "compute");
}

TEST(Why, ThreadsOfAKilledRunAreThoseOfItsSettings) {
  RunRecord run = run_of({with(role("process", {{"forward", 9}}), {{"node_cpu_percent", 26}})});
  run.roles[0].summary.numbers.erase("threads");
  EXPECT_THAT(checked(run).suggestions, Contains(HasSubstr("more --threads or workers")));
  run.settings.emplace_back("threads", "3");
  EXPECT_THAT(checked(run).suggestions, Contains(HasSubstr("more --threads (now 3) or workers")));
}

TEST(Why, StolenCpu) {
  const Diagnosis why =
      checked(run_of({with(role("process", {{"forward", 9}, {"rest", 1}}), {{"node_steal_percent", 31}})}));
  EXPECT_EQ(why.cause, "cpu");
  EXPECT_THAT(why.sentences[0], HasSubstr("took 31 % of the CPU"));
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
  RunRecord run =
      run_of({with(role("process", {{"forward", 9}}), {{"major_faults", 340}, {"node_steal_percent", 50}})});
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
