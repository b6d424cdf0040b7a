// Completion in shells, and manual pages: both are made from the command line, and know what it takes.
#include <set>
#include <sstream>

#include "e2e/support.h"

namespace lockstep::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsSupersetOf;
using ::testing::UnorderedElementsAre;

class Completion : public ProgramTest {
 protected:
  /// Returns what is offered for the last word; the kind of paths goes into `paths`.
  std::vector<std::string> offered(const Words& words) {
    Words all{"--complete"};
    all.insert(all.end(), words.begin(), words.end());
    std::vector<std::string> lines = lines_of(succeed(all).out);
    paths = lines.at(0);
    lines.erase(lines.begin());
    for (std::string& line : lines) line.resize(line.find('\t'));
    return lines;
  }

  /// Runs a shell's script in the folder, with the program as `lockstep`; skips if there is no such shell.
  [[nodiscard]] Ended shell(const std::string& name, const std::string& script) const {
    std::filesystem::create_directories(folder / "bin");
    if (!std::filesystem::exists(folder / "bin/lockstep")) {
      std::filesystem::create_symlink(program_path(), folder / "bin/lockstep");
    }
    Process process("/bin/sh", {"-c", "PATH=$PWD/bin:$PATH exec " + name + " \"$1\"", "sh", script}, options());
    return process.finish();
  }
  [[nodiscard]] bool has(const std::string& program) const {
    Process process("/bin/sh", {"-c", "command -v " + program}, options());
    return process.finish().code == 0;
  }
  void put_text(const std::string& name, const std::string& text) const {
    put_file(folder / name, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  }

  std::string paths;
};

/// Returns the names after the heading "Commands:".
std::vector<std::string> commands_of(const std::string& help) {
  std::vector<std::string> commands;
  bool listed = false;
  for (const std::string& line : lines_of(help)) {
    if (listed && line.starts_with("  ") && line[2] != ' ') commands.push_back(line.substr(2, line.find(' ', 2) - 2));
    listed = listed ? !line.empty() : line == "Commands:";
  }
  return commands;
}

TEST_F(Completion, KnowsEveryCommandAndFlagOfTheHelp) {
  const std::vector<std::string> commands = commands_of(succeed({"--help"}).out);
  EXPECT_GT(commands.size(), 18U);
  EXPECT_EQ(offered({""}), commands);
  for (const std::string& command : commands) {
    const std::string help = succeed({command, command == "train" ? "--help-all" : "--help"}).out;
    const std::vector<std::string> flags = offered({command, "-"});
    std::set<std::string> known(flags.begin(), flags.end());
    for (const std::string& line : lines_of(help)) {
      if (!line.starts_with("  -")) continue;
      const std::string flag = line.substr(line.find("--"), line.find(' ', line.find("--")) - line.find("--"));
      EXPECT_EQ(known.erase(flag), 1U) << command << " " << flag;
    }
    EXPECT_THAT(known, IsEmpty()) << command;
  }
  EXPECT_EQ(offered({"lab", ""}), commands_of(succeed({"lab", "--help"}).out));
  EXPECT_THAT(offered({"help", "tr"}), ElementsAre("train", "trace"));
  EXPECT_THAT(offered({"help", "data", ""}), ElementsAre("list", "get"));
}

TEST_F(Completion, ValuesAreThoseOfTheSettingsModelsRunsAndExperiments) {
  (void)succeed(quick_train("lr", {"--name", "first"}));
  (void)succeed(quick_train("lr", {"--name", "other", "--runs-dir", "elsewhere"}));
  EXPECT_THAT(offered({"show", ""}), ElementsAre("first-1"));
  EXPECT_THAT(offered({"show", "--runs-dir", "elsewhere", ""}), ElementsAre("other-1"));
  EXPECT_THAT(offered({"train", "--resume=f"}), ElementsAre("--resume=first-1"));
  EXPECT_THAT(offered({"compare", "first-1", "f"}), ElementsAre("first-1"));
  EXPECT_EQ(paths, "none");
  EXPECT_THAT(offered({"eval", "./"}), IsEmpty());
  EXPECT_EQ(paths, "files");
  EXPECT_THAT(offered({"train", "lr", "--runs-dir", ""}), IsEmpty());
  EXPECT_EQ(paths, "folders");

  EXPECT_THAT(offered({"train", "len"}), ElementsAre("lenet", "lenet-valid"));
  EXPECT_THAT(offered({"train", "lenet", "--quiet", "--optimizer", ""}), ElementsAre("sgd", "momentum", "adam"));
  EXPECT_THAT(offered({"train", "lenet", "--options", "pool=avg,act"}), ElementsAre("pool=avg,activation="));
  EXPECT_THAT(offered({"train", "--pixels", ""}), ElementsAre("unit", "standard"));
  EXPECT_THAT(offered({"train", "--dataset", "fa"}), ElementsAre("fashion-mnist"));
  EXPECT_THAT(offered({"eval", "first-1", "--checkpoint", "b"}), ElementsAre("best"));
  EXPECT_THAT(offered({"launch", "cluster.yaml", "--", "train", "alex"}), ElementsAre("alexnet"));
  EXPECT_THAT(offered({"runs", "state="}),
              ElementsAre("state=ended", "state=running", "state=broken", "state=interrupted", "state=error"));
  EXPECT_THAT(offered({"runs", "--columns", "lr,accu"}), ElementsAre("lr,accuracy", "lr,accumulate"));

  put_text("small.yaml",
           "name: small\nbase: {model: lr, dataset: synthetic, train_limit: 200, test_limit: 50, epochs: 1}\n");
  const Ended lab = run({"lab", "run", "small.yaml"});
  ASSERT_EQ(lab.code, 0) << lab.err;
  EXPECT_THAT(offered({"lab", "show", ""}), ElementsAre("small"));
}

TEST_F(Completion, NonsenseOffersNothing) {
  for (const Words& words :
       {Words{"nonsense", ""}, Words{"train", "nothing", "--options", ""}, Words{"train", "--no", ""},
        Words{"train", "--nope=", "--lr"}, Words{"--", ""}, Words{"models", "x", ""}}) {
    (void)offered(words);
  }
  EXPECT_THAT(offered({"train", "nothing", "--options", ""}), IsEmpty());
  EXPECT_THAT(fail({"completion", "tcsh"}, 2), HasSubstr("bash, zsh or fish"));
  EXPECT_EQ(succeed({"--complete"}).out, "none\n");
}

TEST_F(Completion, Bash) {
  put_text("ask.sh", R"(source <(lockstep completion bash)
ask() {
  COMP_LINE=$1 COMP_POINT=${#1}
  shift
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
  _lockstep
  echo "${COMPREPLY[*]}"
}
ask 'lockstep tr' lockstep tr
ask 'lockstep train --optimizer=a' lockstep train --optimizer = a
ask 'lockstep runs  state=' lockstep runs state =
ask 'lockstep predict x digit' lockstep predict x digit
ask 'lockstep train --data di' lockstep train --data di
complete -p lockstep
)");
  put_text("digit.png", "");
  std::filesystem::create_directories(folder / "digits");
  const Ended ended = shell("bash --norc", "ask.sh");
  EXPECT_EQ(ended.err, "");
  EXPECT_THAT(lines_of(ended.out),
              ElementsAre("train trace", "adam", "ended running broken interrupted error",
                          AllOf(HasSubstr("digit.png"), HasSubstr("digits")), "digits", HasSubstr("_lockstep")));
}

TEST_F(Completion, Zsh) {
  if (!has("zsh")) GTEST_SKIP() << "no zsh here";
  put_text("ask.zsh", R"(compdef() { print "registered $*" }
_describe() { local kind=$@[3]; [[ $1 == -o ]] || kind=$1; print -r -- ${(P)kind} }
_files() { print "files $*" }
compset() { : }
source <(lockstep completion zsh)
ask() { words=("$@"); CURRENT=$#; PREFIX=$words[CURRENT]; _lockstep }
ask lockstep tr
ask lockstep train --optimizer=a
ask lockstep train --data di
)");
  const Ended ended = shell("zsh -f", "ask.zsh");
  EXPECT_EQ(ended.err, "");
  EXPECT_THAT(lines_of(ended.out), ElementsAre("registered _lockstep lockstep", HasSubstr("trace:Merge the traces"),
                                               "--optimizer=adam:", "files -/"));
}

TEST_F(Completion, Fish) {
  if (!has("fish")) GTEST_SKIP() << "no fish here";
  put_text("ask.fish", R"(lockstep completion fish | source
complete -C 'lockstep tr'
complete -C 'lockstep train --optimizer=a'
)");
  const Ended ended = shell("fish --no-config", "ask.fish");
  EXPECT_EQ(ended.err, "");
  EXPECT_THAT(ended.out, AllOf(HasSubstr("trace\tMerge the traces"), HasSubstr("--optimizer=adam")));
}

TEST_F(Completion, ManualPagesHoldEveryCommandFlagAndVariable) {
  (void)succeed({"docs", "man", "man1"});
  const std::string program = get_file(folder / "man1/lockstep.1");
  const char* root = std::getenv("LOCKSTEP_SOURCE");  // NOLINT(concurrency-mt-unsafe)
  for (const std::string& line : lines_of(get_file(std::string(root) + "/docs/command-line.md"))) {
    if (line.starts_with("| `") && line.find("_") < line.find("` |") && line[3] != '-') {
      EXPECT_THAT(program, HasSubstr(line.substr(3, line.find('`', 3) - 3))) << "in docs/command-line.md";
    }
  }
  for (const std::string& command : commands_of(succeed({"--help"}).out)) {
    std::string page = get_file(folder / ("man1/lockstep-" + command + ".1"));
    EXPECT_THAT(program, HasSubstr("lockstep\\-" + command + "\\fR(1)"));
    EXPECT_THAT(page, AllOf(HasSubstr(".SH NAME"), HasSubstr(".SH SYNOPSIS"), HasSubstr(".SH SEE ALSO")));
    std::erase(page, '\\');
    for (const std::string& flag : offered({command, "--"}))
      EXPECT_THAT(page, HasSubstr("fB" + flag + "fR")) << command;
  }
  if (!has("groff")) GTEST_SKIP() << "no groff here";
  Process groff("/bin/sh", {"-c", "groff -man -ww -z man1/*"}, options());
  const Ended ended = groff.finish();
  EXPECT_EQ(ended.out + ended.err, "");
}

}  // namespace
}  // namespace lockstep::testing
