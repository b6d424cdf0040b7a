// The command line itself: help, hints, exit codes, tables.
#include <set>
#include <sstream>

#include "e2e/support.h"

namespace lockstep::testing {
namespace {

using ::testing::IsSupersetOf;

class CommandLine : public ProgramTest {};

TEST_F(CommandLine, HelpOfEveryCommandHasUsageAndExamples) {
  const std::vector<Words> commands{
      {},         {"train"},    {"eval"}, {"predict"}, {"dash"},    {"tensorboard"}, {"data"},        {"data", "get"},
      {"models"}, {"describe"}, {"info"}, {"plan"},    {"profile"}, {"keys"},        {"keys", "new"}, {"keys", "show"}};
  for (Words words : commands) {
    words.emplace_back("--help");
    const Ended ended = succeed(words);
    EXPECT_THAT(ended.out, AllOf(HasSubstr("Usage: lockstep"), HasSubstr("Example"))) << words.front();
  }
}

/// The flags that a help text lists: the lines that begin with two spaces and dashes.
std::set<std::string> flags_of(const std::string& help) {
  std::set<std::string> flags;
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    const size_t begin = line.find("--");
    if (begin == std::string::npos || begin > 6 || !line.starts_with("  -")) continue;
    flags.insert(line.substr(begin, line.find(' ', begin) - begin));
  }
  return flags;
}

TEST_F(CommandLine, HelpOfTrainShowsTwentyFlagsAndHelpAllEverySetting) {
  const std::string help = succeed({"train", "--help"}).out;
  const std::set<std::string> some = flags_of(help);
  const std::set<std::string> all = flags_of(succeed({"train", "--help-all"}).out);
  EXPECT_EQ(some.size(), 20U + 2U) << "twenty flags, --help and --help-all";
  EXPECT_THAT(some, IsSupersetOf({"--dataset", "--epochs", "--workers", "--resume", "--config", "--help-all"}));
  EXPECT_THAT(all, IsSupersetOf(some));
  EXPECT_THAT(help, HasSubstr(std::to_string(all.size() - some.size()) + " more flags: `lockstep train --help-all`"));

  // The page lists the settings of the table.
  std::set<std::string> settings;
  std::istringstream page(succeed({"docs", "settings"}).out);
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("| `--")) settings.insert(line.substr(3, line.find('`', 3) - 3));
  }
  EXPECT_GT(settings.size(), 80U);
  EXPECT_THAT(all, IsSupersetOf(settings));
}

TEST_F(CommandLine, HelpAsACommandShowsTheSame) {
  EXPECT_EQ(succeed({"help"}).out, succeed({"--help"}).out);
  EXPECT_EQ(succeed({"help", "train"}).out, succeed({"train", "--help"}).out);
  EXPECT_EQ(succeed({"help", "data", "get"}).out, succeed({"data", "get", "--help"}).out);
  EXPECT_THAT(fail({"help", "tran"}, 2), HasSubstr("did you mean 'train'?"));
  EXPECT_THAT(fail({"help", "train", "lenet"}, 2), HasSubstr("`lockstep train` has no command 'lenet'"));
  EXPECT_THAT(succeed({"help", "launch"}).out, HasSubstr("lockstep train --help-all"));
}

TEST_F(CommandLine, WithoutArgumentsItShowsTheHelp) { EXPECT_THAT(succeed({}).out, HasSubstr("Commands:")); }

TEST_F(CommandLine, Version) {
  EXPECT_THAT(succeed({"--version"}).out, StartsWith("lockstep 0."));
  EXPECT_THAT(succeed({"--help"}).out, HasSubstr("--version"));
}

TEST_F(CommandLine, UnknownCommandSuggestsTheNearest) {
  EXPECT_THAT(fail({"tran", "lr"}, 2), HasSubstr("unknown command 'tran' (did you mean 'train'?)"));
  EXPECT_THAT(fail({"data", "lst"}, 2), HasSubstr("did you mean 'list'?"));
}

TEST_F(CommandLine, UnknownFlagSuggestsTheNearest) {
  EXPECT_THAT(fail({"train", "lr", "--epocs", "3"}, 2), HasSubstr("unknown flag '--epocs' (did you mean '--epochs'?)"));
  EXPECT_THAT(fail({"train", "--epocs=3", "lr"}, 2), HasSubstr("(did you mean '--epochs'?)"));
  EXPECT_THAT(fail({"eval", "--splt", "test"}, 2), HasSubstr("did you mean '--split'?"));
  EXPECT_THAT(fail({"train", "lr", "--xyzzyxyzzy"}, 2), HasSubstr("`lockstep train --help-all` lists all"));
  EXPECT_THAT(fail({"eval", "--xyzzyxyzzy"}, 2), HasSubstr("`lockstep eval --help` lists all"));
}

TEST_F(CommandLine, UnknownModelSuggestsTheNearest) {
  EXPECT_THAT(fail({"train", "lenett"}, 2), HasSubstr("unknown model 'lenett' (did you mean 'lenet'?)"));
  EXPECT_THAT(fail({"describe", "lnet"}, 2), HasSubstr("did you mean 'lenet'?"));
}

TEST_F(CommandLine, BadValuesNameFlagAndWhatIsAllowed) {
  EXPECT_THAT(fail({"train", "lr", "--batch", "0"}, 2),
              AllOf(HasSubstr("--batch: '0'"), HasSubstr("from 1 to 10000000")));
  EXPECT_THAT(fail({"train", "lr", "--lr", "-1"}, 2), HasSubstr("--lr: '-1'"));
  EXPECT_THAT(fail({"train", "lr", "--lr"}, 2), HasSubstr("--lr needs a value"));
  EXPECT_THAT(fail({"train", "lr", "--optimizer", "adamm"}, 2), HasSubstr("did you mean 'adam'?"));
  EXPECT_THAT(fail({"train", "lr", "--dataset", "mnst"}, 2), HasSubstr("did you mean 'mnist'?"));
  EXPECT_THAT(fail({"train", "lenet", "--options", "pool=average"}, 2), HasSubstr("pool"));
  EXPECT_THAT(fail({"describe", "lr", "--batch", "x"}, 2), HasSubstr("--batch: 'x'"));
  EXPECT_THAT(fail({"train", "lr", "--async", "--sync"}, 2), HasSubstr("contradicts --"));
  EXPECT_THAT(fail({"train", "lr", "--async", "--mode", "sync"}, 2), HasSubstr("--async: contradicts --mode sync"));
  EXPECT_THAT(fail({"train", "lr", "extra"}, 2), HasSubstr("unexpected argument 'extra'"));
}

TEST_F(CommandLine, MissingArgumentsAreNamed) {
  EXPECT_THAT(fail({"train"}, 2), HasSubstr("no model given"));
  EXPECT_THAT(fail({"eval"}, 2), HasSubstr("RUN is required"));
  EXPECT_THAT(fail({"predict", "some-run"}, 2), HasSubstr("--test"));
}

TEST_F(CommandLine, KeysAreMadeShownAndNeverWrittenOver) {
  EXPECT_THAT(fail({"keys", "new", "keys"}, 2),
              AllOf(HasSubstr("--cluster FILE"), HasSubstr("--node NAME"), HasSubstr("--shared")));
  std::ofstream(folder / "cluster.yaml") << "nodes: [{host: n1, roles: [ps, worker]}, {host: n2, roles: [worker]}]\n";
  EXPECT_THAT(
      succeed({"keys", "new", "keys", "--cluster", "cluster.yaml"}).out,
      AllOf(HasSubstr("keys/n1: for machine n1 (ps:0, worker:0)"), HasSubstr("keys/n2"), HasSubstr("keys/ca.key")));
  EXPECT_THAT(succeed({"keys", "new", "keys", "--node", "n3", "--roles", "worker:2,evaluator:0"}).out,
              HasSubstr("keys/n3: for machine n3 (worker:2, evaluator:0)"));
  EXPECT_THAT(succeed({"keys", "new", "one", "--shared"}).out, HasSubstr("can act as any role"));
  EXPECT_THAT(succeed({"keys", "show", "keys"}).out,
              AllOf(HasSubstr("CN=n2"), HasSubstr("fingerprint"), HasSubstr("valid"), Not(HasSubstr("wrong"))));
  EXPECT_THAT(fail({"keys", "new", "keys", "--cluster", "cluster.yaml"}, 2), HasSubstr("keys already holds keys"));
  EXPECT_THAT(fail({"keys", "new", "keys", "--node", "a b", "--roles", "ps:0"}, 2), HasSubstr("'a b' is not a name"));
  EXPECT_THAT(fail({"keys", "new", "keys", "--node", "n4", "--roles", "wroker:1"}, 2),
              HasSubstr("--roles: 'wroker:1'"));
  EXPECT_THAT(fail({"keys", "new", "keys", "--node", "n4"}, 2), HasSubstr("--roles LIST"));
  EXPECT_THAT(fail({"keys", "show", "none"}, 1), HasSubstr("none/ca.pem"));
  EXPECT_THAT(fail({"keys", "new"}, 2), HasSubstr("DIR is required"));
  std::filesystem::remove(folder / "keys/n1/node.key");
  const Ended ended = run({"keys", "show", "keys"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.out, HasSubstr("wrong: has no node.key beside it"));
}

TEST_F(CommandLine, ModelsListsParameters) {
  EXPECT_THAT(succeed({"models"}).out, AllOf(HasSubstr("7,850"), HasSubstr("61,706"), HasSubstr("44,426")));
}

TEST_F(CommandLine, DescribeCountsParametersOfEachModel) {
  EXPECT_THAT(succeed({"describe", "lr"}).out, HasSubstr("7,850"));
  EXPECT_THAT(succeed({"describe", "lenet", "--batch", "3"}).out,
              AllOf(HasSubstr("61,706"), HasSubstr("[3, 16, 10, 10]")));
  EXPECT_THAT(succeed({"describe", "lenet-valid"}).out, HasSubstr("44,426"));
}

TEST_F(CommandLine, DescribeShowsKernels) {
  const std::string out = succeed({"describe", "lenet", "--kernels", "--options", "pool=avg"}).out;
  EXPECT_THAT(out, AllOf(HasSubstr("implementation"), HasSubstr("conv2/conv2d"), HasSubstr("avg_pool")));
}

TEST_F(CommandLine, PrecisionIsRefusedInOneLineWhereItCannotBe) {
  ProcessOptions limited = options();
  limited.environment.emplace_back("LOCKSTEP_MAX_ISA", "avx2");
  for (const Words& words : {Words{"train", "lenet", "--dataset", "synthetic", "--precision", "bf16"},
                             Words{"describe", "lenet", "--precision", "bf16"}}) {
    const Ended ended = lockstep(words, limited);
    EXPECT_EQ(ended.code, 2) << ended.out;
    expect_one_line(ended.err);
    EXPECT_THAT(ended.err, AllOf(HasSubstr("precision"), HasSubstr("AVX512_BF16"), HasSubstr("avx2")));
  }
  EXPECT_THAT(fail({"train", "lenet", "--dataset", "synthetic", "--backend", "null", "--precision", "bf16"}, 2),
              AllOf(HasSubstr("precision"), HasSubstr("'null'")));
  EXPECT_FALSE(std::filesystem::exists(folder / "runs"));
  EXPECT_THAT(fail({"describe", "lenet", "--precision", "f16"}, 2), AllOf(HasSubstr("f32"), HasSubstr("bf16")));
}

TEST_F(CommandLine, InfoNamesMachineAndVersions) {
  EXPECT_THAT(succeed({"info"}).out, AllOf(HasSubstr("isa"), HasSubstr("onednn"), HasSubstr("highway")));
  const auto json = nlohmann::json::parse(succeed({"info", "--json"}).out);
  for (const char* key : {"version", "compiler", "cpu", "cores", "isa", "threads", "backends", "onednn", "highway",
                          "computes_on", "bf16", "gpu"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
}

TEST_F(CommandLine, InfoHonoursTheLimitOfInstructionSets) {
  ProcessOptions limited = options();
  limited.environment.emplace_back("LOCKSTEP_MAX_ISA", "sse4");
  EXPECT_EQ(nlohmann::json::parse(lockstep({"info", "--json"}, limited).out)["isa"], "sse4");
}

TEST_F(CommandLine, DataListSaysWhereAndHow) {
  const std::string out = succeed({"data", "list"}).out;
  EXPECT_THAT(out, AllOf(HasSubstr("mnist"), HasSubstr("lockstep data get mnist"), HasSubstr("synthetic")));
}

TEST_F(CommandLine, AReaderWhoGoesAwayIsNoError) {
  Process process(program_path(), {"describe", "lenet", "--kernels"}, options());
  process.close_output();
  const Ended ended = process.finish();
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.err, "");
}

TEST_F(CommandLine, AFullDiskUnderStandardOutputIsAnError) {
  ProcessOptions full = options();
  full.output_file = "/dev/full";
  const Ended ended = lockstep({"models"}, full);
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("cannot write to standard output"));
}

}  // namespace
}  // namespace lockstep::testing
