// `lockstep runs`: the list, filters, labels, deleting; `compare --fail-if` and --json.
#include "e2e/support.h"

namespace lockstep::testing {
namespace {

class Runs : public ProgramTest {
 protected:
  void SetUp() override {
    (void)succeed(quick_train("lr", {"--quiet", "--lr", "0.5", "--name", "fast"}));
    (void)succeed(quick_train("lr", {"--quiet", "--lr", "0.001", "--name", "slow", "--epochs", "1"}));
  }
  /// Returns the names of the runs that a list shows, in its order.
  [[nodiscard]] Words listed(const Words& arguments) const {
    Words words{"runs", "--json"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    Words names;
    for (const auto& run : nlohmann::json::parse(succeed(words).out)) names.push_back(run["name"]);
    return names;
  }
};

TEST_F(Runs, AreListedFilteredAndSorted) {
  EXPECT_THAT(succeed({"runs"}).out, AllOf(HasSubstr("fast-1"), HasSubstr("slow-1"), HasSubstr("examples/s")));
  EXPECT_EQ(listed({"lr<0.01"}), Words{"slow-1"});
  EXPECT_EQ(listed({"model=lr", "accuracy>30%", "name=f*"}), Words{"fast-1"});
  EXPECT_EQ(listed({"--sort", "lr"}), (Words{"slow-1", "fast-1"}));
  EXPECT_EQ(listed({"--sort", "lr", "--reverse"}), (Words{"fast-1", "slow-1"}));
  EXPECT_EQ(listed({"state=running"}), Words{});
  EXPECT_THAT(succeed({"runs", "--columns", "lr,batch"}).out, AllOf(HasSubstr("0.001"), Not(HasSubstr("accuracy"))));
  const std::string every = succeed({"runs", "--columns",
                                     "state,end,model,dataset,how,workers,accuracy,best_accuracy,loss,train_loss,steps,"
                                     "epoch,examples,seconds,speed,step_seconds,started,lr,batch,seed"})
                                .out;
  EXPECT_EQ(lines_of(every).size(), 3U) << "a pipe gets a line for the titles and one for each run:\n" << every;
  EXPECT_THAT(fail({"runs", "lrr<1"}, 2), HasSubstr("runs have no 'lrr' (did you mean 'lr'?)"));
  EXPECT_THAT(fail({"runs", "--sort", "acuracy"}, 2), HasSubstr("did you mean 'accuracy'?"));
  EXPECT_THAT(succeed({"runs", "--runs-dir", "none"}).out, HasSubstr("no run in 'none'"));
  const auto run = nlohmann::json::parse(succeed({"runs", "slow-1", "--json"}).out)[0];
  EXPECT_EQ(run["steps"], 20);
  EXPECT_EQ(run["settings"]["batch"], "50");
}

TEST_F(Runs, TagsAndNotesStayWithTheRun) {
  (void)succeed({"runs", "tag", "base", "fast-1", "lr=0.001"});
  EXPECT_EQ(listed({"tag=base"}).size(), 2U);
  (void)succeed({"runs", "tag", "--remove", "base", "slow-1"});
  EXPECT_EQ(listed({"tag=base"}), Words{"fast-1"});
  (void)succeed({"runs", "note", "fast-1", "for", "the paper"});
  EXPECT_EQ(succeed({"runs", "note", "fast-1"}).out, "for the paper\n");
  (void)succeed({"train", "--resume", "runs/fast-1", "--epochs", "3", "--quiet"});
  EXPECT_EQ(listed({"note=*paper"}), Words{"fast-1"});
  EXPECT_THAT(fail({"runs", "tag", "two words", "fast-1"}, 2), HasSubstr("tag 'two words' is not allowed"));
  EXPECT_THAT(fail({"runs", "tag", "x", "fost-1"}, 2), HasSubstr("did you mean 'fast-1'?"));
}

TEST_F(Runs, AreDeletedAfterAsking) {
  EXPECT_THAT(fail({"runs", "delete", "slow-1"}, 2), HasSubstr("--yes"));
  std::filesystem::create_directory_symlink(folder / "runs/fast-1", folder / "runs/link");
  EXPECT_THAT(fail({"runs", "delete", "link", "--yes"}, 2), HasSubstr("is a link"));
  EXPECT_EQ(listed({"slow-1"}).size(), 1U);
  EXPECT_THAT(succeed({"runs", "delete", "lr<0.01", "--yes"}).out, HasSubstr("deleted 1 run"));
  EXPECT_FALSE(std::filesystem::exists(folder / "runs/slow-1"));
  EXPECT_TRUE(std::filesystem::exists(folder / "runs/fast-1/summary.json"));
}

TEST_F(Runs, ARunThatIsTrainingIsNotDeleted) {
  Process training(program_path(), quick_train("lr", {"--epochs", "1000000", "--name", "on", "--log-every", "1"}),
                   options());
  ASSERT_TRUE(training.wait_for("run folder"));
  EXPECT_EQ(listed({"state=running"}), Words{"on-1"});
  EXPECT_THAT(fail({"runs", "delete", "on-1", "--yes"}, 2), HasSubstr("is still training"));
  EXPECT_TRUE(std::filesystem::exists(folder / "runs/on-1/config.yaml"));
  training.signal(SIGINT);
  EXPECT_EQ(training.finish().code, 130);
}

TEST_F(Runs, CompareFailsWhereARuleIsBroken) {
  const Words rule{"compare", "fast-1", "slow-1", "--fail-if", "accuracy<-5pt"};
  const Ended broken = run(rule);
  EXPECT_EQ(broken.code, 3);
  EXPECT_THAT(broken.out, AllOf(HasSubstr("fails: slow-1 against fast-1: accuracy is"), HasSubstr(" per core")));
  EXPECT_THAT(succeed({"compare", "slow-1", "fast-1", "--fail-if", "accuracy<-5pt"}).out,
              HasSubstr("all rules are kept"));
  const Ended listed_json = run({"compare", "fast-1", "slow-1", "--json", "--fail-if", "accuracy<-5pt,steps>0"});
  EXPECT_EQ(listed_json.code, 3);
  const auto parsed = nlohmann::json::parse(listed_json.out);
  EXPECT_EQ(parsed["failed"].size(), 1U);
  EXPECT_EQ(parsed["settings"]["lr"], (nlohmann::json{"0.5", "0.001"}));
  EXPECT_EQ(parsed["runs"][1]["efficiency_per"], "core");
  EXPECT_THAT(fail({"compare", "fast-1", "slow-1", "--fail-if", "acuracy<1"}, 2),
              HasSubstr("did you mean 'accuracy'?"));
}

}  // namespace
}  // namespace lockstep::testing
