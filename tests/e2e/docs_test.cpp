// The generated parts of docs/ match the code.
#include <csignal>
#include <tuple>

#include "e2e/support.h"

namespace lockstep::testing {
namespace {

std::string source_file(const std::string& name) {
  const char* root = std::getenv("LOCKSTEP_SOURCE");  // NOLINT(concurrency-mt-unsafe)
  return get_file(std::string(root) + "/" + name);
}

class Docs : public ProgramTest {};

TEST_F(Docs, OpsAreThoseOfTheTable) {
  EXPECT_EQ(source_file("docs/ops.md"), succeed({"docs", "ops"}).out)
      << "renew it: build/release/lockstep docs ops > docs/ops.md";
}

TEST_F(Docs, SettingsAreThoseOfTheTable) {
  EXPECT_THAT(source_file("docs/command-line.md"), HasSubstr(succeed({"docs", "settings"}).out))
      << "renew the part below 'All settings' with: build/release/lockstep docs settings";
}

TEST_F(Docs, ModelsAndLayersAreThoseOfTheirTables) {
  const std::string page = source_file("docs/models.md");
  EXPECT_THAT(page, HasSubstr(succeed({"docs", "zoo"}).out)) << "renew the table with: build/release/lockstep docs zoo";
  EXPECT_THAT(page, HasSubstr(succeed({"docs", "layers"}).out))
      << "renew the part below 'The kinds of layers' with: build/release/lockstep docs layers";
}

TEST_F(Docs, FieldsOfExperimentsAreThoseOfTheTable) {
  EXPECT_THAT(source_file("docs/experiments.md"), HasSubstr(succeed({"docs", "fields"}).out))
      << "renew the table with: build/release/lockstep docs fields";
}

/// Returns the example of docs/experiments.md.
TEST_F(Docs, TheExperimentFileShownIsOne) {
  const std::string page = source_file("docs/experiments.md");
  const size_t begin = page.find("# my-study.yaml");
  ASSERT_NE(begin, std::string::npos);
  const std::string text = page.substr(begin, page.find("```", begin) - begin);
  put_file(folder / "my-study.yaml", {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  EXPECT_THAT(succeed({"lab", "run", "my-study.yaml", "--dry-run"}).out, HasSubstr("quick"));
  (void)succeed({"lab", "run", "my-study.yaml", "--dry-run", "--scale", "full", "--only", "lenet-*"});
}

/// Returns the examples of docs/experiments.md and docs/cluster-spec.md.
TEST_F(Docs, TheExperimentOnHostsIsOne) {
  for (const auto& [from, begins, file] :
       {std::tuple("docs/experiments.md", "# on-hosts.yaml", "on-hosts.yaml"),
        std::tuple("docs/cluster-spec.md", "# cluster.yaml\nport: 5000", "cluster.yaml")}) {
    const std::string page = source_file(from);
    const size_t begin = page.find(begins);
    ASSERT_NE(begin, std::string::npos) << from;
    const std::string text = page.substr(begin, page.find("```", begin) - begin);
    put_file(folder / file, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  }
  EXPECT_THAT(source_file("docs/experiments.md"), HasSubstr("lockstep lab run on-hosts.yaml --dry-run"));
  EXPECT_THAT(succeed({"lab", "run", "on-hosts.yaml", "--dry-run"}).out,
              AllOf(HasSubstr("hosts of cluster.yaml"), HasSubstr("9 runs to do")));
}

/// Returns the example of docs/models.md.
TEST_F(Docs, TheModelFileShownTrains) {
  const std::string page = source_file("docs/models.md");
  const size_t begin = page.find("# my-model.yaml");
  ASSERT_NE(begin, std::string::npos);
  const std::string text = page.substr(begin, page.find("```", begin) - begin);
  put_file(folder / "my-model.yaml", {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  (void)succeed(quick_train("my-model.yaml", {"--options", "pool=avg"}));
  (void)succeed({"train", "--resume", "runs/my-model-1", "--epochs", "4"});
  (void)succeed({"describe", "my-model.yaml"});
}

/// The last command of docs/reproducibility.md that trains a cluster.
TEST_F(Docs, TheConfigOfAClustersRunTrainsAgain) {
  (void)succeed(quick_train("lr", {"--workers", "1", "--ps", "1", "--epochs", "1"}));
  (void)succeed({"train", "--config", "runs/lr-1/config.yaml", "--workers", "1", "--run-dir", "runs/again"});
  EXPECT_TRUE(std::filesystem::exists(folder / "runs/again/summary.json"));
}

TEST_F(Docs, EveryCommandIsMentioned) {
  const std::string page = source_file("docs/command-line.md");
  for (const char* command : {"train", "eval", "predict", "data list", "data get", "models", "describe", "info",
                              "keys new", "keys show", "lab run"}) {
    EXPECT_THAT(page, HasSubstr("lockstep " + std::string(command)));
  }
}

TEST_F(Docs, ExitCodesOfSignalsAreListed) {
  const std::string page = source_file("docs/errors.md");
  const std::string table = page.substr(0, page.find("## What to do"));
  for (const int signal : {SIGHUP, SIGINT, SIGTERM}) EXPECT_THAT(table, HasSubstr(std::to_string(128 + signal)));
}

/// Without MNIST its studies cannot run, and other people's processes are not its own.
TEST_F(Docs, TheQuickstartSuggestsNothingThatFailsOrHarms) {
  const std::string script = source_file("quickstart.sh");
  EXPECT_THAT(script, Not(HasSubstr("pkill")));
  EXPECT_THAT(script, Not(HasSubstr("99 %")));
  const size_t study = script.find("experiments/study-");
  const size_t condition = script.rfind("if [[ \"$dataset\" == mnist ]]", study);
  ASSERT_NE(condition, std::string::npos);
  EXPECT_THAT(script.substr(condition, study - condition), Not(HasSubstr("\nfi\n")));
}

}  // namespace
}  // namespace lockstep::testing
