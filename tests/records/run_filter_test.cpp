// The filter language of runs, their labels, and the rules of `compare --fail-if`.
#include "records/run_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/error.h"
#include "records/fail_rules.h"
#include "records/run_labels.h"
#include "run_folders.h"

namespace lockstep::records {
namespace {

using lockstep::testing::put_text;
using lockstep::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Terms = std::vector<std::string>;

class RunFilterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    lockstep::testing::write_cluster_run(folder / "lr-1");
    put_text(folder / "lenet-1/config.yaml", "model: lenet\noptions: {pool: avg}\ndataset: mnist\nlr: 0.005\n");
    runs = {values_of(read_run(folder / "lr-1")), values_of(read_run(folder / "lenet-1"))};
  }
  /// Returns the names of the runs that fit.
  std::vector<std::string> fitting(const Terms& terms) const {
    const RunFilter filter(terms, runs);
    std::vector<std::string> names;
    for (const RunValues& run : runs) {
      if (filter.matches(run)) names.push_back(run.at("name").text);
    }
    return names;
  }
  std::string refused(const Terms& terms) const {
    try {
      const RunFilter filter(terms, runs);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "accepted";
  }

  TempDir folder;
  std::vector<RunValues> runs;
};

TEST_F(RunFilterTest, TermsNameResultsSettingsAndOptions) {
  EXPECT_THAT(fitting({}), ElementsAre("lr-1", "lenet-1"));
  EXPECT_THAT(fitting({"model=LeNet"}), ElementsAre("lenet-1"));
  EXPECT_THAT(fitting({"lr<0.01"}), ElementsAre("lenet-1"));
  EXPECT_THAT(fitting({"lr<=0.005", "pool=avg"}), ElementsAre("lenet-1"));
  EXPECT_THAT(fitting({"accuracy>=89.2%"}), ElementsAre("lr-1"));
  EXPECT_THAT(fitting({"accuracy>0.892"}), ElementsAre());
  EXPECT_THAT(fitting({"state=ended"}), ElementsAre("lr-1"));
  EXPECT_THAT(fitting({"state=broken,running"}), ElementsAre("lenet-1"));
  EXPECT_THAT(fitting({"name=l*-1", "model!=lr"}), ElementsAre("lenet-1"));
  EXPECT_THAT(fitting({"started>2026-11-15", "started<2026-11-17"}), ElementsAre("lr-1"));
  EXPECT_THAT(fitting({"ps sync"}), ElementsAre("lr-1"));
  EXPECT_THAT(fitting({"options.hidden=3"}), ElementsAre("lr-1"));
}

TEST_F(RunFilterTest, ABadEndIsAStateToo) {
  EXPECT_THAT(fitting({"state=interrupted"}), ElementsAre());
  put_text(folder / "lr-2/config.yaml", "model: lr\n");
  put_text(folder / "lr-2/summary.json", R"({"model": "lr", "steps": 200, "stop_reason": "interrupted"})");
  put_text(folder / "lr-3/config.yaml", "model: lr\n");
  put_text(folder / "lr-3/summary.json", R"({"model": "lr", "steps": 200, "stop_reason": "non-finite loss"})");
  for (const char* name : {"lr-2", "lr-3"}) runs.push_back(values_of(read_run(folder / name)));
  EXPECT_THAT(fitting({"state=interrupted"}), ElementsAre("lr-2"));
  EXPECT_THAT(fitting({"state=non-finite loss,Interrupted"}), ElementsAre("lr-2", "lr-3"));
  EXPECT_THAT(fitting({"state=ended"}), ElementsAre("lr-1", "lr-2", "lr-3"));
  EXPECT_THAT(fitting({"state=ended", "state!=interrupted"}), ElementsAre("lr-1", "lr-3"));
  EXPECT_THAT(refused({"state=interupted"}), HasSubstr("did you mean 'interrupted'?"));
}

TEST_F(RunFilterTest, AnUnknownValueFitsOnlyUnequal) {
  EXPECT_THAT(fitting({"accuracy!=0.5"}), ElementsAre("lr-1", "lenet-1"));
  EXPECT_THAT(fitting({"accuracy<1"}), ElementsAre("lr-1"));
  EXPECT_THAT(fitting({"accuracy="}), ElementsAre("lenet-1"));
}

TEST_F(RunFilterTest, MistakesAreNamed) {
  EXPECT_THAT(refused({"modl=lr"}), HasSubstr("runs have no 'modl' (did you mean 'model'?)"));
  EXPECT_THAT(refused({"bach=3"}), HasSubstr("did you mean 'batch'?"));
  EXPECT_THAT(refused({"accuracy>high"}), HasSubstr("'high' is not a number"));
  EXPECT_THAT(refused({"state=runing"}), HasSubstr("'runing' is not a state (did you mean 'running'?)"));
  EXPECT_THAT(refused({"model<lr"}), HasSubstr("model is a text; it takes = or !="));
  EXPECT_THAT(refused({"lr<"}), HasSubstr("the value is missing"));
  EXPECT_THAT(refused({"=3"}), HasSubstr("it takes KEY=VALUE"));
  EXPECT_THAT(refused({"lr!3"}), HasSubstr("it takes KEY=VALUE"));
}

TEST_F(RunFilterTest, ALineHasTermsBetweenSpacesAndQuotes) {
  EXPECT_THAT(RunFilter::terms_of("  model=lr  note=\"two words\" x "), ElementsAre("model=lr", "note=two words", "x"));
  EXPECT_THAT(RunFilter::terms_of(""), ElementsAre());
  // Words of a shell: one copied from the dashboard holds several terms, another a value with spaces.
  EXPECT_THAT(RunFilter::terms_of_words(std::vector<std::string>{"model=lr accuracy>95%", "note=two words", "x y"}),
              ElementsAre("model=lr", "accuracy>95%", "note=two words", "x y"));
}

TEST_F(RunFilterTest, LabelsAreKeptBesideTheRun) {
  write_labels(folder / "lr-1", {{"old", "base", "old"}, "kept for the paper"});
  const RunRecord run = read_run(folder / "lr-1");
  EXPECT_THAT(run.labels.tags, ElementsAre("base", "old"));
  EXPECT_EQ(run.labels.note, "kept for the paper");
  runs[0] = values_of(run);
  EXPECT_THAT(fitting({"tag=base"}), ElementsAre("lr-1"));
  EXPECT_THAT(fitting({"tag!=base"}), ElementsAre("lenet-1"));
  EXPECT_THAT(fitting({"tag=bas*"}), ElementsAre("lr-1"));
  EXPECT_THAT(fitting({"paper"}), ElementsAre("lr-1"));
  EXPECT_THROW(write_labels(folder / "lr-1", {{"two words"}, ""}), UsageError);
  EXPECT_THROW(write_labels(folder / "lr-1", {{}, "a\033[2J"}), UsageError);
  write_labels(folder / "lr-1", {});
  EXPECT_TRUE(read_run(folder / "lr-1").labels.empty());
  put_text(folder / "lr-1/labels.json", "[1");
  EXPECT_THAT(read_run(folder / "lr-1").warnings, ElementsAre(HasSubstr("labels.json")));
}

TEST(FailRules, CompareChangesWithLimits) {
  const RunValues before{{"accuracy", {"", 0.9}}, {"speed", {"", 1000}}, {"seconds", {"", 10}}};
  const RunValues now{{"accuracy", {"", 0.895}}, {"speed", {"", 940}}, {"seconds", {"", 13}}};
  const auto broken = [&](const std::string& rules) {
    std::vector<std::string> lines;
    for (const FailRule& rule : parse_fail_rules(rules)) lines.push_back(broken_rule(rule, now, before));
    return lines;
  };
  EXPECT_THAT(broken("accuracy<-0.5pt,speed<-5%"), ElementsAre("", "speed is 6.0 % lower (rule speed<-5%)"));
  EXPECT_THAT(broken("accuracy<-0.4pt"), ElementsAre("accuracy is 0.50 points lower (rule accuracy<-0.4pt)"));
  EXPECT_THAT(broken("seconds>2,seconds>3"), ElementsAre("seconds is 3 higher (rule seconds>2)", ""));
  EXPECT_THAT(broken("loss>1%"), ElementsAre("loss of the run is not known (rule loss>1%)"));
}

TEST(FailRules, MistakesAreNamed) {
  const auto refused = [](const std::string& rules) -> std::string {
    try {
      (void)parse_fail_rules(rules);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refused("acuracy<-1pt"), HasSubstr("did you mean 'accuracy'?"));
  EXPECT_THAT(refused("accuracy<-1pt,"), HasSubstr("it takes KEY<CHANGE"));
  EXPECT_THAT(refused("speed<-5pt"), HasSubstr("speed is no share"));
  EXPECT_THAT(refused("speed<fast"), HasSubstr("not a number"));
  EXPECT_THAT(refused("model<1"), HasSubstr("unknown key 'model'"));
}

}  // namespace
}  // namespace lockstep::records
