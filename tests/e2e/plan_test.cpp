// profile and plan: from a measurement and from a run, to files that other commands and tools read.
#include <regex>

#include "e2e/support.h"
#include "records/run_folders.h"

namespace lockstep::testing {
namespace {

class PlanTest : public ProgramTest {};

TEST_F(PlanTest, AProfileOfAModelIsEnoughForAPlan) {
  const Ended measured = succeed({"profile", "lr", "--batch", "1,16", "--threads", "1", "--seconds", "1"});
  EXPECT_THAT(measured.out, AllOf(HasSubstr("a message costs "), HasSubstr("written to lockstep-profile.json")));
  const auto plan = nlohmann::json::parse(succeed({"plan", "lr", "--nodes", "1,2,3", "--rate", "1gbit", "--json"}).out);
  ASSERT_EQ(plan["rows"].size(), 5);
  for (const auto& row : plan["rows"]) {
    EXPECT_GT(row["examples_per_second"]["value"], 0) << row;
    EXPECT_LE(row["step"]["low"], row["step"]["high"]) << row;
    EXPECT_GT(row["memory_bytes"], 0) << row;
  }
  const std::string text = succeed({"plan", "lr", "--nodes", "1,2,3", "--cost", "0.5/h"}).out;
  EXPECT_THAT(text, AllOf(HasSubstr("limited by"), HasSubstr("fastest: "), HasSubstr("cheapest: ")));
  EXPECT_THAT(fail({"plan", "lenet", "--profile", "lockstep-profile.json"}, 2), HasSubstr("has no model 'lenet'"));
}

TEST_F(PlanTest, ARunIsEnoughForAPlanAndTheExperimentThatChecksIt) {
  (void)succeed(quick_train("lr", {"--quiet", "--name", "alone"}));
  const Ended planned = run({"plan", "alone-1", "--nodes", "1,2", "--rate", "100mbit", "--node", "cores=0.5", "--out",
                             "plan.html", "--yaml", "check.yaml", "--trace", "steps.json"});
  ASSERT_EQ(planned.code, 0) << planned.err;
  EXPECT_THAT(planned.out, HasSubstr("plan for alone-1"));
  EXPECT_THAT(get_file(folder / "plan.html"), HasSubstr("Plan for alone-1"));
  EXPECT_FALSE(nlohmann::json::parse(get_file(folder / "steps.json"))["traceEvents"].empty());
  EXPECT_THAT(succeed({"lab", "run", "check.yaml", "--dry-run"}).out, HasSubstr("plan-check"));
  // A profile of the run's model says how its computing grows with the batch.
  (void)succeed({"profile", "alone-1", "--batch", "1,64", "--threads", "1", "--seconds", "1", "--out", "run.json"});
  EXPECT_THAT(succeed({"plan", "alone-1", "--nodes", "1", "--profile", "run.json"}).out,
              Not(HasSubstr("How computing grows")));
  put_text(folder / "other.json", std::regex_replace(get_file(folder / "run.json"), std::regex("7840"), "784"));
  EXPECT_THAT(fail({"plan", "alone-1", "--profile", "other.json"}, 2),
              HasSubstr("the profile's lr has 794 parameters"));
}

TEST_F(PlanTest, WrongWordsAreOneLine) {
  EXPECT_THAT(fail({"plan", "lr", "--rate", "0"}, 2), HasSubstr("plan: --rate '0': rates such as 100mbit or 1gbit"));
  EXPECT_THAT(fail({"plan", "lr", "--rate", "0gbit"}, 2), HasSubstr("more than 0"));
  EXPECT_THAT(fail({"plan", "lr", "--nodes", "2", "--ps", "2", "--strategy", "ps"}, 2),
              HasSubstr("2 nodes hold no worker beside 2 parameter servers"));
  EXPECT_THAT(fail({"plan", "lr", "--nodes", "1,x"}, 2), HasSubstr("--nodes 'x': whole numbers of 1 to 10000"));
  EXPECT_THAT(fail({"plan", "lr", "--delay", "-1s"}, 2), HasSubstr("--delay '-1s'"));
  EXPECT_THAT(fail({"plan", "lr", "--strategy", "ring"}, 2), HasSubstr("ps and allreduce are allowed"));
  EXPECT_THAT(fail({"plan", "lr", "--until", "accuracy=2"}, 2), HasSubstr("accuracy=X (0 to 1)"));
  EXPECT_THAT(fail({"plan", "lr", "--profile", "nix.json"}, 1), HasSubstr("nix.json"));
  EXPECT_THAT(fail({"plan", "lenett"}, 2), HasSubstr("did you mean 'lenet'?"));
  put_text(folder / "runs/empty/config.yaml", "model: lr\n");
  EXPECT_THAT(fail({"plan", "empty"}, 2), HasSubstr("empty is no basis for a plan: it recorded no phases"));
  EXPECT_THAT(fail({"profile", "lr", "--threads", "0"}, 2), HasSubstr("--threads '0'"));
}

}  // namespace
}  // namespace lockstep::testing
