// `lockstep data get` from a mirror on this machine.
#include "data/mirror.h"
#include "e2e/support.h"

namespace lockstep::testing {
namespace {

class Fetch : public ProgramTest {
 protected:
  void SetUp() override {
    if (real_mnist().empty()) GTEST_SKIP() << "there is no MNIST on this machine to serve";
    for (const char* name : {"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz",
                             "t10k-labels-idx1-ubyte.gz"}) {
      mirror.serve("/" + std::string(name), get_file(real_mnist() + "/mnist/" + name));
    }
  }
  [[nodiscard]] ProcessOptions fetching() {
    ProcessOptions with = options();
    with.environment.emplace_back("LOCKSTEP_MNIST_MIRROR", mirror.url());
    with.environment.emplace_back("XDG_CACHE_HOME", folder / "cache");
    return with;
  }

  Mirror mirror;
};

TEST_F(Fetch, GetsEachFileOnceAndFindsItLater) {
  const Ended first = lockstep({"data", "get", "mnist"}, fetching());
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out, AllOf(HasSubstr("fetched train-images-idx3-ubyte.gz"), HasSubstr("cache/lockstep/mnist")));
  EXPECT_EQ(mirror.requests(), 4);
  EXPECT_EQ(lockstep({"data", "get", "mnist"}, fetching()).code, 0);
  EXPECT_EQ(mirror.requests(), 4);
}

TEST_F(Fetch, ShowsABarOnATerminal) {
  ProcessOptions terminal = fetching();
  terminal.terminal = true;
  const Ended ended = lockstep({"data", "get", "mnist"}, terminal);
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("fetched t10k-labels-idx1-ubyte.gz"));
}

TEST_F(Fetch, ProcessesThatStartTogetherFetchOnce) {
  const Words words{"train", "lr", "--epochs", "1", "--threads", "1", "--train-limit", "1000", "--quiet"};
  Process one(program_path(), words, fetching());
  Process two(program_path(), words, fetching());
  const Ended first = one.finish();
  const Ended second = two.finish();
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(second.code, 0) << second.err;
  EXPECT_EQ(mirror.requests(), 4);
  EXPECT_NE(first.out.substr(first.out.rfind("runs/")), second.out.substr(second.out.rfind("runs/")));
}

TEST_F(Fetch, ADamagedMirrorIsRefused) {
  Mirror damaged;
  damaged.serve("/train-images-idx3-ubyte.gz", "not at all");
  ProcessOptions with = fetching();
  with.environment.emplace_back("LOCKSTEP_MNIST_MIRROR", damaged.url());
  const Ended ended = lockstep({"data", "get", "mnist"}, with);
  EXPECT_EQ(ended.code, 1);
  expect_one_line(ended.err);
  EXPECT_THAT(ended.err, HasSubstr("damaged"));
}

}  // namespace
}  // namespace lockstep::testing
