#include "backend/cpu/kernels/reduce.h"

#include <gtest/gtest.h>

#include <vector>

#include "support.h"

namespace lockstep::backend::cpu {
namespace {

TEST(Reduce, ColumnAndRowSums) {
  for (const int64_t rows : {0, 1, 2, 5, 64, 513}) {
    for (const int64_t count : {1, 3, 10, 16, 33, 120}) {
      SCOPED_TRACE(::testing::Message() << rows << " x " << count);
      Buffer src = random_buffer(rows * count, static_cast<uint64_t>(rows * count), -1, 1, 1);
      std::vector<Reference> columns(static_cast<size_t>(count));
      std::vector<Reference> lines(static_cast<size_t>(rows));
      for (int64_t i = 0; i < rows * count; ++i) {
        columns[static_cast<size_t>(i % count)].add(src[i]);
        lines[static_cast<size_t>(i / count)].add(src[i]);
      }
      Buffer one(count);
      Buffer two(count);
      column_sums(src.data(), one.data(), rows, count, 1);
      column_sums(src.data(), two.data(), rows, count, 2);
      for (int64_t i = 0; i < count; ++i) {
        expect_close(one[i], columns[static_cast<size_t>(i)], "column", i);
        EXPECT_EQ(one[i], two[i]) << "the bits depend on the number of threads";
      }
      Buffer sums(rows);
      row_sums(src.data(), sums.data(), rows, count, 2);
      for (int64_t i = 0; i < rows; ++i) expect_close(sums[i], lines[static_cast<size_t>(i)], "row", i);
    }
  }
}

TEST(Reduce, SumsOfLongArraysAreExactAndTheSameOnAnyThreads) {
  for (const int64_t count : {0, 1, 17, 1000, 300001}) {
    Buffer src = random_buffer(count, 6);
    double plain = 0;
    for (int64_t i = 0; i < count; ++i) plain += src[i];
    EXPECT_NEAR(sum(src.data(), count, 1), plain, 1e-9 * (1 + static_cast<double>(count)));
    EXPECT_EQ(sum(src.data(), count, 1), sum(src.data(), count, 2));
  }
}

}  // namespace
}  // namespace lockstep::backend::cpu
