// A separate program, because it reads the peak memory of the process.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>

#include "data/catalog.h"

namespace lockstep::data {
namespace {

/// MNIST is 55 MB of bytes.
TEST(Catalog, ReadingTakesLittleMoreMemoryThanTheData) {
  const char* root = std::getenv("LOCKSTEP_TEST_DATA");
  LoadOptions options;
  options.source.data_dir = root == nullptr ? "" : root;
  if (!std::filesystem::exists(options.source.data_dir + "/mnist")) GTEST_SKIP() << "no MNIST under LOCKSTEP_TEST_DATA";
  const Dataset dataset = load("mnist", options);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  EXPECT_EQ(dataset.train.count(), 60000);
  EXPECT_LT(usage.ru_maxrss, 90'000) << "kB";
}

}  // namespace
}  // namespace lockstep::data
