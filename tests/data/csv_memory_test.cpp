// A separate program, because it reads the peak memory of the process.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>

#include "base/temp_dir.h"
#include "data/own_data.h"

namespace lockstep::data {
namespace {

/// 8 million values are 32 MB of floats.
TEST(OwnData, ReadingCsvTakesAtMostTwiceItsFloats) {
  const lockstep::testing::TempDir dir;
  std::string line;
  for (int i = 0; i < 100; ++i) line += "0.125,";
  {
    std::ofstream out(dir / "large.csv");
    for (int i = 0; i < 80000; ++i) out << line << i % 2 << '\n';
  }
  const Dataset dataset = read_own_data(dir / "large.csv", {});
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  EXPECT_EQ(dataset.train.count() + dataset.test.count(), 80000);
  EXPECT_LT(usage.ru_maxrss, 2 * 32'000 + 16'000) << "kB";
}

}  // namespace
}  // namespace lockstep::data
