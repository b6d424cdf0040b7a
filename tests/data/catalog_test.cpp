#include "data/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>

#include "base/temp_dir.h"
#include "data/formats.h"
#include "data/idx.h"
#include "data/mirror.h"
#include "lockstep/error.h"

namespace lockstep::data {
namespace {

using lockstep::testing::get_file;
using lockstep::testing::gzip;
using lockstep::testing::make_idx;
using lockstep::testing::message_of;
using lockstep::testing::Mirror;
using lockstep::testing::put_file;
using lockstep::testing::ramp;
using lockstep::testing::TempDir;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kNowhere = "http://127.0.0.1:1/";

/// Writes the four files of a tiny data set, whose first label is `mark`.
void put_tiny(const std::string& folder, uint8_t mark, const char* suffix = "") {
  std::filesystem::create_directories(folder);
  put_file(folder + "/train-images-idx3-ubyte" + suffix, make_idx({4, 2, 2}, ramp(16)));
  put_file(folder + "/train-labels-idx1-ubyte" + suffix, make_idx({4}, {mark, 1, 2, 3}));
  put_file(folder + "/t10k-images-idx3-ubyte" + suffix, make_idx({2, 2, 2}, ramp(8)));
  put_file(folder + "/t10k-labels-idx1-ubyte" + suffix, make_idx({2}, {mark, 1}));
}

class Catalog : public ::testing::Test {
 protected:
  Catalog() {
    options_.source = SourceOptions{};
    options_.source.cache_dir = dir_ / "cache";
    options_.source.system_dir = dir_ / "system";
    options_.source.mirrors = {kNowhere};
  }

  int32_t mark(const std::string& name = "mnist") { return load(name, options_).train.labels.at(0); }

  TempDir dir_;
  LoadOptions options_;
};

TEST_F(Catalog, LooksInOrder) {
  put_tiny(dir_ / "system/mnist", 8);
  EXPECT_EQ(mark(), 8);
  put_tiny(dir_ / "cache/mnist", 7);
  EXPECT_EQ(mark(), 7);
  options_.source.env_dir = dir_ / "env";
  EXPECT_EQ(mark(), 7);
  put_tiny(dir_ / "env", 6);
  EXPECT_EQ(mark(), 6);
  put_tiny(dir_ / "env/mnist", 5);
  EXPECT_EQ(mark(), 5);
  options_.source.data_dir = dir_ / "flag";
  put_tiny(dir_ / "flag", 4);
  EXPECT_EQ(mark(), 4);
  put_tiny(dir_ / "flag/mnist", 3);
  EXPECT_EQ(mark(), 3);
  EXPECT_EQ(load("mnist", options_).origin, dir_ / "flag/mnist");
}

TEST_F(Catalog, KnowsTheFilesByAllTheirNames) {
  put_tiny(dir_ / "cache/mnist", 7, ".gz");
  EXPECT_EQ(mark(), 7);
  const std::string folder = dir_ / "cache/mnist/";
  std::filesystem::rename(folder + "train-images-idx3-ubyte.gz", folder + "train-images.idx3-ubyte");
  EXPECT_EQ(mark(), 7);
}

TEST_F(Catalog, GivesWhatTheFilesHold) {
  put_tiny(dir_ / "cache/fashion-mnist", 9);
  const Dataset dataset = load("fashion-mnist", options_);
  EXPECT_EQ(dataset.name, "fashion-mnist");
  EXPECT_EQ(dataset.classes(), 10);
  EXPECT_EQ(dataset.shape(), (ImageShape{1, 2, 2}));
  EXPECT_EQ(dataset.train.count(), 4);
  EXPECT_EQ(dataset.test.count(), 2);
  EXPECT_EQ(dataset.class_names.at(9), "Ankle boot");
}

TEST_F(Catalog, HoldsOutAndCuts) {
  put_tiny(dir_ / "cache/mnist", 7);
  options_.holdout = 1;
  options_.train_limit = 2;
  options_.test_limit = 1;
  const Dataset dataset = load("mnist", options_);
  EXPECT_THAT(dataset.train.labels, ElementsAre(7, 1));
  EXPECT_THAT(dataset.validation.labels, ElementsAre(3));
  EXPECT_THAT(dataset.test.labels, ElementsAre(7));
  options_.holdout = 4;
  EXPECT_THAT(message_of<UsageError>([&] { load("mnist", options_); }), HasSubstr("holdout 4"));
}

TEST_F(Catalog, AFolderGivenMustExistAndBeComplete) {
  options_.source.data_dir = dir_ / "typo";
  EXPECT_EQ(message_of<IoError>([&] { load("mnist", options_); }), "--data " + (dir_ / "typo") + ": no such folder");
  put_tiny(dir_ / "typo", 1);
  std::filesystem::remove(dir_ / "typo/t10k-labels-idx1-ubyte");
  EXPECT_EQ(message_of<IoError>([&] { load("mnist", options_); }),
            (dir_ / "typo") + " has only some of the four files: t10k-labels-idx1-ubyte missing (plain or .gz)");
}

TEST_F(Catalog, SaysHowToProvideMnist) {
  EXPECT_THAT(message_of<IoError>([&] { load("mnist", options_); }),
              AllOf(HasSubstr("MNIST is not on this machine and cannot be fetched"), HasSubstr(kNowhere),
                    HasSubstr("train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte, "
                              "t10k-labels-idx1-ubyte (plain or .gz)"),
                    HasSubstr("--data DIR"), HasSubstr("LOCKSTEP_DATA=DIR"), HasSubstr(dir_ / "cache/mnist"),
                    HasSubstr("--dataset fashion-mnist (Debian package dataset-fashion-mnist)")));
  options_.source.may_fetch = false;
  EXPECT_THAT(message_of<IoError>([&] { load("mnist", options_); }), HasSubstr("fetching is switched off"));
  options_.source.may_fetch = true;
  options_.source.cache_dir.clear();
  EXPECT_THAT(message_of<IoError>([&] { load("mnist", options_); }), HasSubstr("no cache folder"));
}

TEST_F(Catalog, SaysHowToInstallFashionMnist) {
  EXPECT_THAT(message_of<IoError>([&] { load("fashion-mnist", options_); }),
              HasSubstr("Fashion-MNIST is not on this machine: apt-get install dataset-fashion-mnist"));
}

TEST_F(Catalog, SuggestsNames) {
  EXPECT_EQ(message_of<UsageError>([&] { load("mnits", options_); }),
            "unknown data set 'mnits' (did you mean 'mnist'?); own data is a path that ends in .npz or .csv");
  EXPECT_THAT(dataset_names(), ElementsAre("mnist", "fashion-mnist", "cluttered-mnist", "cluttered-mnist-generated",
                                           "images", "synthetic"));
}

TEST_F(Catalog, DamagedCacheSaysHowToMendIt) {
  put_tiny(dir_ / "cache/mnist", 7);
  put_file(dir_ / "cache/mnist/train-labels-idx1-ubyte", make_idx({4}, {1, 2}));
  EXPECT_THAT(message_of<DataError>([&] { load("mnist", options_); }),
              AllOf(HasSubstr("train-labels-idx1-ubyte: cut off"),
                    HasSubstr("remove " + (dir_ / "cache/mnist") + " to have it fetched again")));
}

TEST_F(Catalog, RefusesSplitsOfDifferentSizes) {
  put_tiny(dir_ / "cache/mnist", 7);
  put_file(dir_ / "cache/mnist/t10k-images-idx3-ubyte", make_idx({2, 3, 2}, ramp(12)));
  EXPECT_THAT(message_of<DataError>([&] { load("mnist", options_); }),
              HasSubstr("training images of 1x2x2 but test images of 1x3x2"));
}

TEST_F(Catalog, ListTellsWhereAndHow) {
  put_tiny(dir_ / "system/fashion-mnist", 7);
  const auto entries = list(options_.source);
  ASSERT_EQ(entries.size(), 7U);
  EXPECT_FALSE(entries[0].available);
  EXPECT_EQ(entries[0].how, "lockstep data get mnist (fetched once)");
  EXPECT_TRUE(entries[1].available);
  EXPECT_EQ(entries[1].folder, dir_ / "system/fashion-mnist");
  EXPECT_FALSE(entries[2].available);
  EXPECT_EQ(entries[2].how, "needs mnist: lockstep data get mnist (fetched once)");
  EXPECT_TRUE(entries[4].available);
  options_.source.data_dir = dir_ / "typo";
  EXPECT_THAT(list(options_.source)[0].how, HasSubstr("no such folder"));
}

TEST_F(Catalog, SyntheticNeedsNothing) {
  EXPECT_EQ(fetch("synthetic", options_.source), "");
  options_.train_limit = 100;
  EXPECT_EQ(load("synthetic", options_).train.count(), 100);
}

TEST_F(Catalog, ReadsTheEnvironment) {
  ::setenv("LOCKSTEP_DATA", "/some/where", 1);
  ::setenv("XDG_CACHE_HOME", "/my/cache", 1);
  ::setenv("LOCKSTEP_MNIST_MIRROR", "http://a/, http://b/", 1);
  SourceOptions options = SourceOptions::from_environment("flag");
  EXPECT_EQ(options.data_dir, "flag");
  EXPECT_EQ(options.env_dir, "/some/where");
  EXPECT_EQ(options.cache_dir, "/my/cache/lockstep");
  EXPECT_THAT(options.mirrors, ElementsAre("http://a/", "http://b/"));
  ::setenv("XDG_CACHE_HOME", "relative", 1);
  ::setenv("HOME", "/home/me", 1);
  EXPECT_EQ(SourceOptions::from_environment().cache_dir, "/home/me/.cache/lockstep");
  for (const char* name : {"LOCKSTEP_DATA", "XDG_CACHE_HOME", "LOCKSTEP_MNIST_MIRROR"}) ::unsetenv(name);
}

class RealData : public Catalog {
 protected:
  void SetUp() override {
    const char* root = std::getenv("LOCKSTEP_TEST_DATA");
    root_ = root == nullptr ? "" : root;
    if (!std::filesystem::exists(root_ + "/mnist")) GTEST_SKIP() << "no MNIST under LOCKSTEP_TEST_DATA";
  }

  std::string root_;
};

void expect_sixty_thousand(const Dataset& dataset) {
  EXPECT_EQ(dataset.train.count(), 60000);
  EXPECT_EQ(dataset.test.count(), 10000);
  EXPECT_EQ(dataset.shape(), (ImageShape{1, 28, 28}));
}

TEST_F(RealData, MnistIsRead) {
  options_.source.data_dir = root_;
  options_.holdout = 5000;
  const Dataset dataset = load("mnist", options_);
  EXPECT_EQ(dataset.train.count(), 55000);
  EXPECT_EQ(dataset.validation.count(), 5000);
  EXPECT_THAT(std::vector(dataset.train.labels.begin(), dataset.train.labels.begin() + 5), ElementsAre(5, 0, 4, 1, 9));
  EXPECT_THAT(std::vector(dataset.test.labels.begin(), dataset.test.labels.begin() + 3), ElementsAre(7, 2, 1));
  const double sum = std::accumulate(dataset.test.bytes.begin(), dataset.test.bytes.end(), 0.0);
  EXPECT_NEAR(sum / static_cast<double>(dataset.test.bytes.size()) / 255, 0.1325, 0.0001);
}

TEST_F(RealData, FashionMnistIsRead) {
  options_.source.system_dir = SourceOptions{}.system_dir;
  if (!std::filesystem::exists(options_.source.system_dir + "/fashion-mnist")) GTEST_SKIP() << "not installed";
  expect_sixty_thousand(load("fashion-mnist", options_));
}

/// The two data sets have files of the same names; only a folder's name or its content shows which one it is.
TEST_F(RealData, OneDataSetIsNotTakenForTheOther) {
  options_.source.data_dir = root_ + "/mnist";
  expect_sixty_thousand(load("mnist", options_));
  EXPECT_THAT(message_of<IoError>([&] { load("fashion-mnist", options_); }), HasSubstr("apt-get install"));
}

TEST_F(RealData, MnistIsFetchedFromAMirrorOnce) {
  Mirror mirror;
  for (const char* name : {"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz",
                           "t10k-labels-idx1-ubyte.gz"}) {
    mirror.serve(std::string("/mnist/") + name, get_file(root_ + "/mnist/" + name));
  }
  options_.source.mirrors = {kNowhere, mirror.url("/mnist/")};
  EXPECT_EQ(fetch("mnist", options_.source), dir_ / "cache/mnist");
  expect_sixty_thousand(load("mnist", options_));
  EXPECT_EQ(mirror.requests(), 4);
}

}  // namespace
}  // namespace lockstep::data
