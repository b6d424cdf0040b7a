// The engine on Open MPI, as jobs of mpirun: beyond what the conformance asks of all engines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>

#include "e2e/process.h"

namespace lockstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// mpirun's own advice on what happened is left out.
Ended mpirun(int ranks, const std::string& what, double deadline = 60) {
  Process process("/usr/bin/env",
                  {"mpirun", "-q", "--oversubscribe", "--bind-to", "none", "-n", std::to_string(ranks),
                   std::getenv("LOCKSTEP_MPI_RANK"), what, std::to_string(ranks), std::to_string(deadline)});
  return process.finish(std::chrono::seconds(100));
}

class MpiJob : public ::testing::TestWithParam<int> {};

TEST_P(MpiJob, SumsInTheOrderOfRanksToTheSameBitsEverywhere) {
  const Ended ended = mpirun(GetParam(), "sums");
  EXPECT_EQ(ended.code, 0) << ended.err;
  for (int rank = 0; rank < GetParam(); ++rank) {
    EXPECT_THAT(ended.out,
                HasSubstr("rank " + std::to_string(rank) + " of " + std::to_string(GetParam()) + " is right"));
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, MpiJob, ::testing::Values(2, 3, 4), ::testing::PrintToStringParamName());

TEST(Mpi, AStoppedRankIsNamedAfterTheDeadlineAndNobodyIsLeft) {
  const Ended ended = mpirun(2, "stopped", 1.5);
  EXPECT_NE(ended.code, 0);
  EXPECT_THAT(ended.err, HasSubstr("all-reduce between 2 MPI ranks, at rank 0: rank 1 sent nothing for 1.5 s"));
}

TEST(Mpi, AKilledRankEndsTheJob) {
  const Ended ended = mpirun(3, "killed", 60);
  EXPECT_EQ(ended.code, 128 + SIGKILL);
  EXPECT_THAT(ended.out + ended.err, Not(HasSubstr("sent nothing")));
}

TEST(Mpi, ARankThatIsSilentIsNamedAfterTheDeadline) {
  const Ended ended = mpirun(3, "asleep", 1.5);
  EXPECT_NE(ended.code, 0);
  EXPECT_THAT(ended.err, HasSubstr("rank 2 sent nothing for 1.5 s"));
}

TEST(Mpi, ARankThatDoesNotStartIsWaitedForUntilTheDeadlineOnly) {
  const Ended ended = mpirun(2, "late", 1.5);
  EXPECT_NE(ended.code, 0);
  EXPECT_THAT(ended.err, HasSubstr("MPI: not all of 2 ranks have come within 1.5 s"));
}

TEST(Mpi, AProcessThatNoLauncherStartedIsTold) {
  Process process(std::getenv("LOCKSTEP_MPI_RANK"), {"sums", "2", "1"});
  const Ended ended = process.finish();
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, AllOf(HasSubstr("mpirun"), HasSubstr("this process is none")));
}

TEST(Mpi, AnotherNumberOfRanksIsRefused) {
  Process process("/usr/bin/env",
                  {"mpirun", "-q", "--oversubscribe", "-n", "2", std::getenv("LOCKSTEP_MPI_RANK"), "sums", "3", "5"});
  const Ended ended = process.finish();
  EXPECT_NE(ended.code, 0);
  EXPECT_THAT(ended.err, HasSubstr("MPI has 2 ranks and the cluster 3 workers"));
}

}  // namespace
}  // namespace lockstep::testing
