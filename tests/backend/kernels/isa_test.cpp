#include "backend/cpu/isa.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "backend/cpu/kernels/batch_layout.h"
#include "lockstep/error.h"

namespace lockstep::backend::cpu {
namespace {

TEST(Isa, NamesAreParsedBack) {
  for (const Isa isa : {Isa::sse4, Isa::avx2, Isa::avx512}) EXPECT_EQ(parse_isa(name(isa)), isa);
}

TEST(Isa, UnknownNameIsAUsageErrorThatNamesTheAllowed) {
  try {
    parse_isa("neon");
    FAIL() << "expected a UsageError";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("sse4, avx2, avx512"), std::string::npos) << error.what();
  }
}

TEST(Isa, EnvironmentLimitsIt) {
  limit_isa_from_environment();
  if (const char* limit = std::getenv("LOCKSTEP_MAX_ISA")) {
    EXPECT_LE(active_isa(), parse_isa(limit));
  }
}

TEST(BatchLayout, LanesSuitTheInstructionSetAndTheBatch) {
  EXPECT_EQ(batch_lanes(1), 0);
  EXPECT_EQ(batch_lanes(3), 0);
  const bool wide = active_isa() == Isa::avx512;
  const int usual = wide ? 16 : active_isa() == Isa::avx2 ? 8 : 4;
  EXPECT_EQ(batch_lanes(64), usual);
  EXPECT_EQ(batch_lanes(512), usual);
  EXPECT_EQ(batch_lanes(8), wide ? 8 : usual);
  EXPECT_EQ(batch_lanes(24), wide ? 8 : usual);
  EXPECT_EQ(batch_lanes(9), usual);
}

}  // namespace
}  // namespace lockstep::backend::cpu
