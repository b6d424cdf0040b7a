// Experiment files: the experiments they describe, and the errors they cause with their places.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/parallel.h"
#include "base/temp_dir.h"
#include "lab/experiments.h"

namespace lockstep::testing {
namespace {

using lab::value_of;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Experiment, AGridIsEveryCombinationInTheOrderOfTheFile) {
  const lab::Experiment made = parse(kBase + "grid: {batch: [32, 64], lr: [0.1, 0.50]}\n");
  EXPECT_THAT(keys_of(made), ElementsAre("e-batch=32-lr=0.1-r1", "e-batch=32-lr=0.5-r1", "e-batch=64-lr=0.1-r1",
                                         "e-batch=64-lr=0.5-r1"));
  const lab::RunPlan& last = made.groups[0].runs[3];
  EXPECT_EQ(value_of(last.settings, "batch"), "64");
  EXPECT_EQ(value_of(last.settings, "dataset"), "synthetic");
  EXPECT_EQ(value_of(last.varied, "lr"), "0.5");
  EXPECT_EQ(value_of(last.varied, "dataset"), "");
}

TEST(Experiment, CasesChangeSeveralSettingsTogetherAndMultiplyTheGrid) {
  const lab::Experiment made = parse(kBase + R"(
grid: {batch: [32, 64]}
cases:
  - {label: alone, tags: {nodes: 1}}
  - {label: three, layout: PW-W-W, mode: async, tags: {nodes: 3}}
)");
  EXPECT_THAT(keys_of(made), ElementsAre("e-batch=32-r1", "e-batch=64-r1", "e-batch=32-layout=PW-W-W-mode=async-r1",
                                         "e-batch=64-layout=PW-W-W-mode=async-r1"));
  EXPECT_EQ(made.groups[0].runs[2].label, "three");
  EXPECT_EQ(value_of(made.groups[0].runs[2].tags, "nodes"), "3");
}

TEST(Experiment, RepeatsHaveSeedsOfTheirOwn) {
  const lab::Experiment made = parse("name: e\nrepeats: 3\nbase: {model: lr, epochs: 1, seed: 7}\n");
  ASSERT_THAT(keys_of(made), ElementsAre("e-r1", "e-r2", "e-r3"));
  EXPECT_EQ(value_of(made.groups[0].runs[0].settings, "seed"), "7");
  EXPECT_EQ(value_of(made.groups[0].runs[2].settings, "seed"), "9");
  EXPECT_EQ(made.groups[0].runs[2].repeat, 3);
}

TEST(Experiment, TheSettingsOfAGroupLieOverThoseOfTheFile) {
  const lab::Experiment made = parse(R"(
name: e
repeats: 2
base: {model: lr, epochs: 1, batch: 10, lr: 0.5}
groups:
  - {name: a, base: {batch: 20}, repeats: 1}
  - {name: b, cases: [{lr: 0.1, repeats: 3}]}
)");
  EXPECT_THAT(keys_of(made), ElementsAre("a-r1", "b-r1", "b-r2", "b-r3"));
  EXPECT_EQ(value_of(made.groups[0].runs[0].settings, "batch"), "20");
  EXPECT_EQ(value_of(made.groups[1].runs[0].settings, "batch"), "10");
  EXPECT_EQ(value_of(made.groups[1].runs[0].settings, "lr"), "0.1");
}

TEST(Experiment, OptionsOfTheModelMergeOneByOne) {
  const lab::Experiment made = parse(R"(
name: e
base: {model: lenet, epochs: 1, options: {pool: avg, activation: tanh}}
grid: {options.pool: [max, avg]}
)");
  EXPECT_THAT(keys_of(made), ElementsAre("e-pool=max-r1", "e-pool=avg-r1"));
  EXPECT_EQ(value_of(made.groups[0].runs[0].settings, "options.activation"), "tanh");
}

TEST(Experiment, AClusterIsReplacedKeyByKey) {
  const lab::Experiment made = parse(R"(
name: e
base: {model: lr, epochs: 1, workers: 2}
cluster: {emulate: {cores: 0.1, rate: 1gbit, node2: {cores: 0.2}}, faults: [at 1s kill worker:1, at 2s cut node1 for 1s]}
groups:
  - {name: a}
  - {name: b, cluster: {faults: off}}
  - {name: c, cluster: {emulate: {cores: 0.05}}}
  - {name: d, cluster: off}
)");
  EXPECT_EQ(made.groups[0].runs[0].cluster.emulate, "cores=0.1,rate=1gbit,node2.cores=0.2");
  EXPECT_EQ(made.groups[0].runs[0].cluster.faults, "at 1s kill worker:1; at 2s cut node1 for 1s");
  EXPECT_EQ(made.groups[1].runs[0].cluster.faults, "");
  EXPECT_EQ(made.groups[1].runs[0].cluster.emulate, made.groups[0].runs[0].cluster.emulate);
  EXPECT_EQ(made.groups[2].runs[0].cluster.emulate, "cores=0.05");
  EXPECT_EQ(made.groups[3].runs[0].cluster.emulate, "");
}

TEST(Experiment, WhatTheBaseSaysOfClustersIsNotForOneProcess) {
  const lab::Experiment made = parse("name: e\nbase: {model: lr, epochs: 1, mode: async}\ngrid: {workers: [0, 2]}\n");
  EXPECT_EQ(value_of(made.groups[0].runs[0].settings, "mode"), "");
  EXPECT_EQ(value_of(made.groups[0].runs[1].settings, "mode"), "async");
}

const std::string kScales = R"(
name: e
repeats: 3
base: {model: lr, epochs: 20, lr: 0.5}
groups:
  - {name: a, grid: {batch: [32, 64]}}
  - {name: b, base: {batch: 8}}
report:
  tables:
    - {name: t, rows: [batch], columns: [accuracy]}
    - {name: u, rows: [batch], columns: [loss]}
scales:
  full: {}
  quick:
    repeats: 1
    base: {epochs: 1}
    groups: {a: {grid: {batch: [128]}}, b: off}
    report: {tables: {u: off, t: {columns: [seconds]}}}
)";

TEST(Scales, TheFirstIsTakenWhereNoneIsAskedFor) {
  const lab::Experiment made = parse(kScales);
  EXPECT_EQ(made.scale, "full");
  EXPECT_EQ(made.runs(), 9U);
}

TEST(Scales, AScaleLiesOverTheFile) {
  const lab::Experiment made = parse(kScales, "quick");
  EXPECT_THAT(keys_of(made), ElementsAre("a-r1"));
  const lab::Values& settings = made.groups[0].runs[0].settings;
  EXPECT_EQ(value_of(settings, "epochs"), "1");
  EXPECT_EQ(value_of(settings, "lr"), "0.5");
  EXPECT_EQ(value_of(settings, "batch"), "128");
  ASSERT_EQ(made.report.tables.size(), 1U);
  EXPECT_THAT(made.report.tables[0].columns, ElementsAre("seconds"));
}

TEST(Scales, UnknownOnesAndUnknownNamesInThemAreRefused) {
  EXPECT_EQ(refusal(kScales, "quik"), "test.yaml: has no scale 'quik' (did you mean 'quick'?)");
  EXPECT_EQ(refusal(kBase, "quick"), "test.yaml: has no scales, so --scale quick is not allowed");
  EXPECT_THAT(refusal(kBase + "groups: [{name: lenet}]\nscales: {quick: {groups: {lenett: off}}}\n"),
              StartsWith("test.yaml:4:27: the file has no 'lenett' among its groups (did you mean 'lenet'?)"));
  EXPECT_THAT(refusal(kBase + "scales: {a: {name: b}}\n"), StartsWith("test.yaml:3:14: a scale cannot change 'name'"));
}

TEST(Scales, WhatIsWrongAtAnotherScaleIsRefusedToo) {
  EXPECT_THAT(refusal(kBase + "scales:\n  a: {}\n  b: {base: {batch: no}}\n"),
              StartsWith("test.yaml:5:21: batch: 'no' is not allowed"));
}

struct Wrong {
  std::string text;
  std::string message;  ///< how it begins
};

class Refused : public ::testing::TestWithParam<Wrong> {};

TEST_P(Refused, AtItsPlaceInOneLine) {
  const std::string message = refusal(GetParam().text);
  EXPECT_THAT(message, StartsWith(GetParam().message));
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    Experiment, Refused,
    ::testing::Values(
        Wrong{"", "test.yaml: is empty"}, Wrong{"a: [", "test.yaml:1:"},
        Wrong{"[1]", "test.yaml:1:1: an experiment must be a map, not a list"},
        Wrong{"base: {model: lr}\n", "test.yaml:1:1: an experiment needs a name"},
        Wrong{"name: a b\n", "test.yaml:1:7: name: 'a b' is not a name"},
        Wrong{"name: ../x\n", "test.yaml:1:7: name: '../x' is not a name"},
        Wrong{"name: e\nrepeat: 2\n", "test.yaml:2:1: unknown key 'repeat' of an experiment (did you mean 'repeats'?)"},
        Wrong{"name: e\nname: f\n", "test.yaml:2:1: key 'name' is repeated"},
        Wrong{"name: e\nbase: {epocs: 1}\n", "test.yaml:2:8: unknown setting 'epocs' (did you mean 'epochs'?)"},
        Wrong{"name: e\nbase: {batch: 0}\n", "test.yaml:2:15: batch: '0' is not allowed; it takes a whole number"},
        Wrong{"name: e\nbase: {batch: [1, 2]}\n", "test.yaml:2:15: batch: is a list"},
        Wrong{"name: e\nbase: {run_dir: x}\n", "test.yaml:2:8: 'run-dir' is set by the lab"},
        Wrong{"name: e\nbase: {resume: x}\n", "test.yaml:2:8: 'resume' is set by the lab"},
        Wrong{"name: e\nbase: {emulate: on}\n", "test.yaml:2:8: 'emulate' belongs under `cluster:`"},
        Wrong{"name: e\nrepeats: 0\n", "test.yaml:2:10: repeats: '0' is not allowed"},
        Wrong{"name: e\nbase: {epochs: 1}\n", "test.yaml:1:1: run e: has no model"},
        Wrong{"name: e\nbase: {model: lenett}\n", "test.yaml:2:15: unknown model 'lenett'"},
        Wrong{kBase + "groups: []\n", "test.yaml:3:9: groups is an empty list"},
        Wrong{kBase + "groups: [{base: {}}]\n", "test.yaml:3:10: a group needs a name"},
        Wrong{kBase + "groups: [{name: a}, {name: a}]\n", "test.yaml:3:28: group 'a' appears twice"},
        Wrong{kBase + "groups: [{name: a}]\ngrid: {batch: [1]}\n", "test.yaml:4:7: grid at the top level"},
        Wrong{kBase + "grid: {}\n", "test.yaml:3:7: the grid is empty"},
        Wrong{kBase + "grid: {batch: []}\n", "test.yaml:3:15: batch in the grid is an empty list"},
        Wrong{kBase + "grid: {batch: [1, 1]}\n", "test.yaml:3:19: batch: '1' is in the grid twice"},
        Wrong{kBase + "grid: {lr: [0.1, x]}\n", "test.yaml:3:18: lr: 'x' is not allowed"},
        Wrong{kBase + "cases: []\n", "test.yaml:3:8: cases is an empty list"},
        Wrong{kBase + "cases: [{batch: 1}, {batch: 1}]\n", "test.yaml:3:21: this case of group e is the same run as"},
        Wrong{kBase + "cases: [{label: a, batch: 1}, {label: a, batch: 2}]\n",
              "test.yaml:3:39: label 'a' appears twice"},
        Wrong{kBase + "grid: {batch: [1, 2]}\ncases: [{batch: 1}]\n", "test.yaml:4:9: batch is already in the grid"},
        Wrong{kBase + "cases: [{tags: {batch: 1}}]\n", "test.yaml:3:17: a tag cannot be called 'batch'"},
        Wrong{kBase + "cases: [{tags: {accuracy: 1}}]\n", "test.yaml:3:17: a tag cannot be called 'accuracy'"},
        Wrong{kBase + "cases: [{layout: PX-W}]\n", "test.yaml:3:9: run e: "},
        Wrong{kBase + "cases: [{layout: PW-W, workers: 3}]\n",
              "test.yaml:3:9: run e: workers: 3 does not fit the layout 'PW-W'"},
        Wrong{kBase + "cases: [{mode: async}]\n", "test.yaml:3:9: run e: mode: async applies only to clusters"},
        Wrong{kBase + "cases: [{workers: 2, strategy: allreduce, ps: 1}]\n", "test.yaml:3:9: run e: ps: 1 with"},
        Wrong{kBase + "cases: [{workers: 2, global-batch: 9}]\n",
              "test.yaml:3:9: run e: global-batch: 9 cannot be shared"},
        Wrong{kBase + "cases: [{nesterov: yes}]\n", "test.yaml:3:9: run e: nesterov: "},
        Wrong{kBase + "cluster: {emulat: on}\n", "test.yaml:3:11: unknown key 'emulat' of cluster"},
        Wrong{kBase + "cluster: {emulate: {cors: 1}}\n", "test.yaml:3:20: run e: "},
        Wrong{kBase + "cluster: {hosts: a.yaml, emulate: on}\n", "test.yaml:3:18: hosts and emulate do not go"},
        Wrong{kBase + "cluster: {hosts: no-such.yaml}\n", "test.yaml:3:18: run e: cannot "},
        Wrong{kBase + "cluster: {emulate: on, faults: at 1s kill worker:0}\n",
              "test.yaml:3:32: run e: faults: 'kill worker:0': the run has no worker:0"},
        Wrong{kBase + "cluster: {faults: at 1s cut node1 for 1s}\n", "test.yaml:3:19: run e: faults: "},
        Wrong{kBase + "cases: [{batch: 1}, {batch: 2, cluster: {emulate: {cors: 1}}}]\n",
              "test.yaml:3:51: run e-batch=2"},
        Wrong{"name: e\nrepeats: 2\nbase: {model: lr, seed: 18446744073709551615}\n",
              "test.yaml:1:1: run e: seed 18446744073709551615 leaves no seeds for 2 repeats"},
        Wrong{kBase + "repeats: 1000\ngrid: {batch: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]}\n",
              "test.yaml:1:1: group e brings the experiment to 11000 runs; at most 10000"}));

TEST(Experiment, ClustersLargerThanThisMachineAreRefusedWithTheArithmetic) {
  const int cores = base::available_cores();
  const std::string text =
      kBase + "cases: [{layout: PW-W-W-W}]\ncluster: {emulate: {cores: " + std::to_string(cores) + "}}\n";
  EXPECT_THAT(refusal(text), AllOf(StartsWith("test.yaml:4:20: run e: "), HasSubstr("4 nodes"), HasSubstr("--local")));
}

TEST(Experiment, ANameThatIsTooLongIsRefusedWithTheLimit) {
  EXPECT_THAT(refusal("name: " + std::string(61, 'a') + "\n"), HasSubstr("up to 60 letters"));
}

TEST(Overrides, LocalRunsHaveNoEmulatedNodesNorFaultsThatNeedThem) {
  lab::ParseOptions options;
  options.overrides.local = true;
  const lab::Experiment made = lab::parse_experiment(R"(
name: e
base: {model: lr, epochs: 1, workers: 2}
cluster: {emulate: on, faults: [at 1s kill worker:1, at 2s cut node1 for 1s]}
cases:
  - {label: a}
  - {label: b, batch: 7, cluster: {emulate: {cores: 0.1}, faults: at 2s slow node2 to 50%}}
)",
                                                     "test.yaml", "", options);
  const auto& runs = made.groups[0].runs;
  EXPECT_EQ(runs[0].cluster.emulate, "");
  EXPECT_EQ(runs[0].cluster.faults, "at 1s kill worker:1");
  EXPECT_EQ(runs[1].cluster.emulate, "");
  EXPECT_EQ(runs[1].cluster.faults, "");
}

TEST(Overrides, NodesCanBeSetForAllGroupsThatHaveThem) {
  lab::ParseOptions options;
  options.overrides.settings = {{"emulate", "cores=0.1"}};
  const auto parsed = [&](const std::string& rest) {
    return lab::parse_experiment("name: e\nbase: {model: lr, epochs: 1}\n" + rest, "test.yaml", "", options);
  };
  const lab::Experiment made = parsed(R"(
cluster: {emulate: {cores: 0.2}, faults: at 1s slow node1 to 50%}
groups:
  - {name: a}
  - {name: b, cluster: {emulate: {cores: 0.3}}}
  - {name: c, cluster: off}
)");
  EXPECT_EQ(made.groups[0].runs[0].cluster.emulate, "cores=0.1");
  EXPECT_EQ(made.groups[0].runs[0].cluster.faults, "at 1s slow node1 to 50%");
  EXPECT_EQ(made.groups[1].runs[0].cluster.emulate, "cores=0.1");
  EXPECT_EQ(made.groups[2].runs[0].cluster.emulate, "");
  EXPECT_EQ(parsed("").groups[0].runs[0].cluster.emulate, "cores=0.1");
  const auto refused = [&](const std::string& rest) { return message_of<UsageError>([&] { (void)parsed(rest); }); };
  EXPECT_THAT(refused("cases: [{cluster: {emulate: on}}]\n"), StartsWith("--set emulate: test.yaml:3:"));
  EXPECT_THAT(refused("cluster: {hosts: h.yaml}\n"), StartsWith("--set emulate: not with the hosts of"));
}

TEST(Overrides, OptionsOfTheModelCanBeSet) {
  lab::ParseOptions options;
  options.overrides.settings = {{"options.pool", "max"}};
  const auto parsed = [&](const std::string& rest) {
    return lab::parse_experiment("name: e\n" + rest, "test.yaml", "", options);
  };
  for (const char* text : {"base: {model: lenet, epochs: 1}\n", "base: {model: lenet, options: {pool: avg}}\n",
                           "groups: [{name: a, base: {model: lenet, options.pool: avg}}]\n"}) {
    EXPECT_EQ(value_of(parsed(text).groups[0].runs[0].settings, "options.pool"), "max") << text;
  }
  for (const char* varied : {"grid: {options.pool: [avg, max]}\n", "cases: [{options: {pool: avg}}]\n"}) {
    EXPECT_THAT(message_of<UsageError>([&] { (void)parsed(std::string("base: {model: lenet}\n") + varied); }),
                AllOf(StartsWith("--set options.pool: test.yaml:3:"), HasSubstr("varies it")));
  }
}

TEST(Experiment, AFileThatIsNotThereIsOneLine) {
  EXPECT_THAT(message_of<IoError>([] { (void)lab::load_experiment("/no/such.yaml", ""); }), HasSubstr("/no/such.yaml"));
}

const std::string kGuests =
    "name: e\nbase: {dataset: mnist, epochs: 2}\ngroups:\n- name: g\n  figures: {accuracy: 'acc ([0-9.]+)', loss: 'l "
    "(.*)'}\n"
    "  cases:\n";

TEST(Experiment, ACaseMayRunAnyProgram) {
  const lab::Experiment experiment = parse(
      kGuests +
      "  - {label: a, workers: 2, command: 'python3 a.py --e {epochs}'}\n"
      "  - {label: b, workers: 3, command: [python3, a.py, --e, '{epochs}'], figures: {loss: off}, deadline: 5m}\n"
      "  - {label: c, command: './b --rank {rank} --to {run_dir}', figures: {loss: {csv: x.csv, column: l}}}\n"
      "  - {label: ours, model: lr}\n");
  EXPECT_THAT(keys_of(experiment), ElementsAre("g-workers=2-command=a.py-r1", "g-workers=3-command=a.py-r1",
                                               "g-command=b-r1", "g-model=lr-r1"));
  const std::vector<lab::RunPlan>& runs = experiment.groups[0].runs;
  EXPECT_THAT(runs[1].guest.figures, ElementsAre("accuracy=output:acc ([0-9.]+)"));
  EXPECT_EQ(runs[1].guest.deadline, "5m");
  EXPECT_EQ(runs[2].guest.figures.back(), "loss=csv:x.csv#l");
  EXPECT_FALSE(runs[3].is_guest());
}

TEST(Experiment, CasesWithDifferentLogsAreDifferentRuns) {
  const TempDir folder;
  std::string text = "name: e\ncases:\n";
  for (const char* name : {"a", "b"}) {
    const std::string log = "#UTC [CPU]User% [CPU]Sys%\n1 5 1\n2 7 1\n";
    put_file(folder / name, {reinterpret_cast<const uint8_t*>(log.data()), log.size()});
    text += fmt::format("  - {{label: {}, logs: {{worker:0: {}}}}}\n", name, folder / name);
  }
  EXPECT_THAT(keys_of(parse(text)), ElementsAre("e-command=logs-r1", "e-command=logs-2-r1"));
}

TEST(Experiment, AProgramThatCannotRunIsRefusedAtItsPlace) {
  const auto refused = [](const std::string& rest) { return refusal(kGuests + "  - {label: a, " + rest + "}\n"); };
  EXPECT_THAT(refused("command: 'x {bach}'"), AllOf(HasSubstr("test.yaml:7:25"), HasSubstr("'{bach}'")));
  EXPECT_THAT(refused("command: \"x 'y\""), HasSubstr("test.yaml:7:25: command: has a ' without end"));
  EXPECT_THAT(refused("command: x, deadline: soon"), HasSubstr("deadline: 'soon' is not allowed"));
  EXPECT_THAT(refused("command: x, figures: {acuracy: 'a'}"), AllOf(HasSubstr("'acuracy'"), HasSubstr("'accuracy'")));
  EXPECT_THAT(refused("command: x, figures: {loss: '('}"), HasSubstr("'(' is not a regular expression"));
  EXPECT_THAT(refused("command: x, figures: {loss: {csv: a}}"), HasSubstr("needs column"));
  EXPECT_THAT(refused("command: x, figures: {loss: {events: a, tag: b, over: time}}"), HasSubstr("step or epoch"));
  EXPECT_THAT(refused("command: x, cluster: {faults: [at 1s kill worker:0]}"), HasSubstr("the run has no worker:0"));
  EXPECT_THAT(refused("command: x, workers: 2, cluster: {faults: [at 1s cut node1 for 1s]}"),
              HasSubstr("needs emulate"));
  EXPECT_THAT(refused("command: x, layout: XY"), HasSubstr("test.yaml:7"));
  EXPECT_THAT(refused("command: x, logs: {worker:0: a}"), HasSubstr("do not go together"));
  EXPECT_THAT(refused("logs: {node1: a}"), HasSubstr("node1"));
  EXPECT_THAT(refused("logs: {worker:0: {file: a, every: soon}}"), HasSubstr("every: 'soon' is not allowed"));
  EXPECT_THAT(refused("logs: {worker:0: no-such.csv}"), AllOf(HasSubstr("test.yaml:7"), HasSubstr("no-such.csv")));
  EXPECT_THAT(refusal("name: e\ncommand: x\nfigures: {loss: a}\ngrid: {batch: [1, 2]}\n"),
              HasSubstr("batch varies, but the command does not have {batch}"));
}

TEST(Experiment, WithoutNodesCasesThatDifferedByTheirFaultsAreLeftOut) {
  lab::ParseOptions options;
  options.overrides.local = true;
  const std::string text =
      "name: e\nbase: {model: lr, workers: 2}\ncluster: {emulate: on}\ncases:\n  - {label: none}\n"
      "  - {label: cut, cluster: {faults: at 1s cut node1 for 1s}}\n"
      "  - {label: kill, cluster: {faults: at 1s kill worker:1}}\n";
  const lab::Experiment local = lab::parse_experiment(text, "test.yaml", "", options);
  ASSERT_EQ(local.runs(), 2U);
  EXPECT_EQ(local.groups[0].runs[1].label, "kill");
  EXPECT_THAT(message_of<UsageError>(
                  [&] { (void)lab::parse_experiment(text + "  - {label: same}\n", "test.yaml", "", options); }),
              HasSubstr("'same' of group e is the same run as 'none'"));
}

TEST(Experiment, ATestThatNoScaleHasRunsForIsRefused) {
  const auto with = [](const std::string& test) {
    return "name: e\nbase: {model: lr}\ngrid: {batch: [10, 20]}\ncases: [{label: x}, {label: y, lr: 0.5}]\n"
           "report:\n  findings:\n    - {name: f, says: F., tests: [" +
           test + "]}\n";
  };
  const auto refused = [&](const std::string& test) { return refusal(with(test)); };
  EXPECT_THAT(refused("{compare: seconds, first: {label: x}, second: {label: z}, is: less}"),
              HasSubstr("test.yaml:7:35: finding f: no run has label 'z'; there are 'x', 'y'"));
  EXPECT_THAT(refused("{value: seconds, where: {batch: 30}, at_least: 1}"), HasSubstr("no run has batch '30'"));
  EXPECT_THAT(refused("{trend: seconds, over: epochs, is: grows}"),
              HasSubstr("the test needs runs that differ in epochs"));
  EXPECT_THAT(refused("{most: seconds, over: label, is: z}"), HasSubstr("is: no run has label 'z'"));
  EXPECT_THAT(refused("{slope: seconds, over: label, at_least: 1}"),
              HasSubstr("a slope needs numbers above 0 in label"));
  EXPECT_THAT(refused("{value: seconds, at_least: 3, at_most: 2}"), HasSubstr("at_least: 3 is above at_most: 2"));
  // A scale may leave out runs that another one has.
  const std::string scales = "scales:\n  quick: {cases: [{label: x}]}\n  full: {}\n";
  EXPECT_THAT(refusal(with("{value: seconds, where: {label: z}, at_least: 1}") + scales), HasSubstr("label 'z'"));
  EXPECT_NO_THROW((void)parse(with("{value: seconds, where: {label: y}, at_least: 1}") + scales));
}

}  // namespace
}  // namespace lockstep::testing
