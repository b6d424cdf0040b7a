// scripts/bundle: its archive runs where none of this machine's libraries can be seen.
#include <unistd.h>

#include "e2e/support.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

class Bundle : public ProgramTest {
 protected:
  /// Runs a script of bash in the test's folder.
  [[nodiscard]] Ended bash(const std::string& script, const Words& arguments = {}) const {
    Words words{"-euc", script, "bash"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return Process("/bin/bash", words, options()).finish();
  }
  /// Makes the bundle of the program under test and unpacks it into `where`.
  void unpack(const std::string& where) const {
    const std::string source = std::getenv("LOCKSTEP_SOURCE");  // NOLINT(concurrency-mt-unsafe)
    const Ended made =
        bash(R"("$1"/scripts/bundle --output bundle.tar "$2" && mkdir -p "$3" && tar -xf bundle.tar -C "$3")",
             {source, program_path(), where});
    ASSERT_EQ(made.code, 0) << made.err;
    ASSERT_TRUE(fs::exists(folder / (where + "/lockstep-bundle/bin/lockstep")));
  }
};

constexpr const char* kTrain = "train lr --dataset synthetic --train-limit 1000 --test-limit 200 --epochs 1 --batch 50";

TEST_F(Bundle, RunsWithAnEmptyEnvironmentAndStartsItselfForRoles) {
  unpack("there");
  const Ended alone = bash(std::string("env -i there/lockstep-bundle/bin/lockstep ") + kTrain + " --threads 1");
  EXPECT_EQ(alone.code, 0) << alone.err;
  const Ended cluster =
      bash(std::string("ln -s there/lockstep-bundle/bin/lockstep linked; env -i ./linked ") + kTrain + " --workers 2");
  EXPECT_EQ(cluster.code, 0) << cluster.err;
  EXPECT_EQ(summary("lr-1")["stop_reason"], "epochs");
  EXPECT_EQ(summary("lr-2")["stop_reason"], "epochs");
}

// The root folder there holds a shell with what it needs, and no other library.
TEST_F(Bundle, RunsWithoutTheLibrariesOfThisMachine) {
  if (bash("unshare -m true").code != 0) GTEST_SKIP() << "a mount namespace needs CAP_SYS_ADMIN";
  unpack("root");
  const Ended ended = bash(R"bash(
    for file in /bin/sh $(ldd /bin/sh | grep -o '/[^ ]*'); do mkdir -p "root${file%/*}"; cp -L "$file" "root$file"; done
    mkdir -p root/proc root/dev root/tmp
    unshare -m bash -euc '
      mount --make-rprivate /
      mount --rbind /proc root/proc
      mount --rbind /dev root/dev
      exec env -i "$(command -v chroot)" root /lockstep-bundle/bin/lockstep '"$1"' --threads 2 --runs-dir /tmp/runs
    ')bash",
                           {kTrain});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("/tmp/runs/lr-1"));
  EXPECT_EQ(nlohmann::json::parse(get_file(folder / "root/tmp/runs/lr-1/summary.json"))["stop_reason"], "epochs");
}

TEST_F(Bundle, NamesTheProgramThatIsNotBuilt) {
  const std::string source = std::getenv("LOCKSTEP_SOURCE");  // NOLINT(concurrency-mt-unsafe)
  const Ended ended = bash(R"("$1"/scripts/bundle --build "$2" no_such_program)", {source, folder.path()});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, StartsWith("bundle: no program no_such_program in "));
}

}  // namespace
}  // namespace lockstep::testing
