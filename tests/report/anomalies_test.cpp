// Figures that studies reported, checked against themselves.
#include "report/anomalies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "lab/experiment.h"
#include "report/made_results.h"
#include "report/tables.h"

namespace lockstep::report {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Pairs = Reported::Pairs;

std::vector<std::string> found(const std::string& csv, const Fields& keys, const Fields& columns,
                               const Pairs& names = {}, std::optional<bool> same_here = std::nullopt) {
  Pairs all = names;
  for (const Fields* fields : {&keys, &columns}) {
    for (const std::string& field : *fields) all.emplace_back(field, field);
  }
  const Reported figures(csv, all, {});
  return anomalies({figures, keys, columns, [&](const std::string&, const std::vector<size_t>&) { return same_here; }});
}

/// Returns what is found in all tables of an experiment file, without any run. Its nodes may be too large for this
/// machine.
std::map<std::string, std::vector<std::string>> found_in(const std::string& file) {
  const lab::Experiment experiment = lab::load_experiment(file, "", {.overrides = {.settings = {}, .local = true}});
  std::map<std::string, std::vector<std::string>> texts;
  for (const lab::TableSpec& table : experiment.report.tables) {
    const Reported figures(lab::value_of(experiment.reported, table.reported), table.reported_columns,
                           table.reported_where);
    texts[table.name] = anomalies({figures, table.rows, table.columns});
  }
  return texts;
}

/// Study 4's sync rows of one worker beside the server, and of three machines.
constexpr const char* kSync =
    "deploy,batch,iterations,seconds,accuracy_percent\n"
    "single,1,7100,18.799,90.62\nsingle,5,7100,18.667,90.62\nsingle,20,7100,18.81,90.62\nsingle,600,7100,18.862,90.62\n"
    "cluster,1,15400,34.728,90.4\ncluster,5,15000,62.946,90.6\ncluster,20,14600,34.02,90.68\n"
    "cluster,600,14200,112.628,90.71\n";

TEST(Anomalies, RowsThatAreTheSameForAllBatchesAreFound) {
  const auto texts = found(kSync, {"deploy", "batch"}, {"iterations", "seconds", "accuracy"},
                           {{"accuracy", "accuracy_percent"}}, false);
  EXPECT_THAT(texts, Contains("The same iterations (7,100) and test accuracy (90.62 %) in all 4 rows of deploy single, "
                              "batch 1 to 600: was batch applied?"));
  EXPECT_THAT(texts, Contains(HasSubstr("in all 4 rows of deploy single, batch 1 to 600, with up to 600 times the "
                                        "arithmetic")));
  EXPECT_THAT(texts, Contains(HasSubstr("time 62.9 s (deploy cluster, batch 5), beside 34.7 s and 34.0 s")));
  EXPECT_EQ(texts.size(), 3U);
}

TEST(Anomalies, TheStudysOwnTableIsFoundToBeOdd) {
  const char* source = std::getenv("LOCKSTEP_SOURCE");  // NOLINT(concurrency-mt-unsafe)
  ASSERT_NE(source, nullptr);
  std::string all;
  for (const auto& [table, texts] : found_in(std::string(source) + "/experiments/study-4.yaml")) {
    for (const std::string& text : texts) all += table + ": " + text + "\n";
  }
  EXPECT_THAT(all, HasSubstr("The same test accuracy (90.62 %) in all 8 rows"));
}

TEST(Anomalies, FiguresThatAreTheSameHereTooAreNotFound) {
  const char* steps = "batch,steps,accuracy\n1,7100,0.911\n5,7100,0.905\n20,7100,0.899\n";
  EXPECT_THAT(found(steps, {"batch"}, {"steps", "accuracy"}, {}, true), IsEmpty());
  EXPECT_THAT(found(steps, {"batch"}, {"steps", "accuracy"}), IsEmpty());  // a count may be given
  EXPECT_EQ(found(steps, {"batch"}, {"steps", "accuracy"}, {}, false).size(), 1U);
}

TEST(Anomalies, ATableSaysThemBelowUnlessTheFiguresAreTheSameHereToo) {
  const auto table = [](double second) {
    std::vector<lockstep::testing::MadeRun> runs;
    for (const char* batch : {"1", "5", "20"}) {
      runs.push_back(
          {.varied = {{"batch", batch}}, .values = {{"accuracy", std::string(batch) == "5" ? second : 0.9}}});
    }
    lab::Results results = lockstep::testing::repeated(runs);
    results.experiment.reported = {{"r.csv", "batch,accuracy\n1,0.911\n5,0.911\n20,0.911\n"}};
    lab::TableSpec spec;
    spec.rows = {"batch"};
    spec.columns = {"accuracy"};
    spec.reported = "r.csv";
    spec.reported_columns = {{"batch", "batch"}, {"accuracy", "accuracy"}};
    const Material material(results);
    return table_of(material, spec, "t");
  };
  EXPECT_THAT(table_html(table(0.8)), HasSubstr("<li>The same test accuracy (91.10 %) in all 3 rows of batch 1 to 20"));
  EXPECT_THAT(table_markdown(table(0.8)), HasSubstr("- odd about the reported figures: The same test accuracy"));
  EXPECT_THAT(table(0.9).odd, IsEmpty());
}

TEST(Anomalies, RoundedFiguresAndWorkersOfARunMayAgree) {
  EXPECT_THAT(found("batch,loss\n1,0.3\n5,0.3\n20,0.3\n", {"batch"}, {"loss"}, {}, false), IsEmpty());
  EXPECT_THAT(found("batch,worker,accuracy\n1,0,0.9059\n1,1,0.9059\n1,2,0.9059\n", {"batch", "worker"}, {"accuracy"},
                    {}, false),
              IsEmpty());
}

TEST(Anomalies, ImpossibleFiguresAreFound) {
  const char* csv =
      "batch,accuracy,cpu_percent,process_cpu_percent,seconds\n1,1.2,50,390,3\n2,0.9,104,50,0\n4,0.9,99,50,-1\n";
  const auto texts = found(csv, {"batch"}, {"accuracy", "cpu_percent", "process_cpu_percent", "seconds"});
  EXPECT_THAT(texts, ElementsAre("Impossible figures: test accuracy 1.2 (batch 1); CPU of the node 104 (batch 2); "
                                 "time 0 (batch 2); time -1 (batch 4)."));
}

TEST(Anomalies, TheSameCaseTwiceIsFoundUnlessAllAreThereTwice) {
  const char* once = "mode,batch,accuracy\nsync,100,0.8843\nasync,100,0.9019\nsync,100,0.8837\nsync,200,0.8678\n";
  EXPECT_THAT(found(once, {"mode", "batch"}, {"accuracy"}),
              ElementsAre("The same case is there twice: mode sync, batch 100: test accuracy 88.43 % and 88.37 %."));
  EXPECT_THAT(found(once, {"mode"}, {"accuracy"}), IsEmpty());
}

TEST(Anomalies, AWorkerWithoutIterationsIsFound) {
  EXPECT_THAT(found("worker,iterations,seconds\n0,7300,28.494\n1,0,31.195\n", {"worker"}, {"iterations", "seconds"}),
              ElementsAre("Results without an iteration: worker 1."));
}

TEST(Anomalies, ATimeThatGrowsWithTheBatchIsNotFound) {
  EXPECT_THAT(found("batch,step_seconds\n32,2.29\n128,3.1\n512,11.97\n", {"batch"}, {"step_seconds"}), IsEmpty());
  EXPECT_THAT(found("batch,step_seconds\n32,2.29\n128,2.31\n512,2.35\n", {"batch"}, {"step_seconds"}),
              ElementsAre(HasSubstr("An iteration takes 2.29 s to 2.35 s in all 3 rows of batch 32 to 512")));
}

TEST(Anomalies, ARateThatContradictsTheTimeOfAStepIsFound) {
  const char* csv =
      "label,batch,examples_per_second,step_seconds\none,32,14.0,2.29\nthree,32,40.5,2.39\nodd,32,21,2.29\n";
  EXPECT_THAT(found(csv, {"label", "batch"}, {"examples_per_second", "step_seconds"}),
              ElementsAre("Rate times time of a step is not a whole number of workers times the batch: odd, batch 32: "
                          "1.50."));
}

TEST(Anomalies, TrafficThatDoesNotAddUpIsFound) {
  const Fields both{"network_received", "network_sent"};
  const char* nodes =
      "nodes,network_received,network_sent\n1,24781,2672\n2,160985621,139865475\n4,127654719,448795321\n";
  EXPECT_THAT(found(nodes, {"nodes"}, both), ElementsAre(HasSubstr(": 128 MB/s received, 449 MB/s sent (nodes 4).")));
  EXPECT_THAT(found("nodes,network_received_max,network_sent_max\n4,128M,449M\n", {"nodes"},
                    {"network_received_max", "network_sent_max"}),
              ElementsAre(HasSubstr(": 128 MB/s received, 449 MB/s sent (nodes 4).")));
  const char* workers =
      "mode,worker,network_received,network_sent\nasync,0,29M,28M\nasync,1,14M,14M\nsync,0,22M,26M\n"
      "sync,1,13M,13M\n";
  EXPECT_THAT(found(workers, {"mode", "worker"}, both),
              ElementsAre("The nodes together do not receive what they send: 35.0 MB/s received, 39.0 MB/s sent (mode "
                          "sync)."));
}

}  // namespace
}  // namespace lockstep::report
