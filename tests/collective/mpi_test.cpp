// The Open MPI engine as jobs of mpirun, beyond the conformance of all engines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <string>

#include "e2e/process.h"

namespace lockstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Runs a job, without mpirun's own advice on failures.
Ended mpirun(int ranks, const std::string& what, double deadline = 60) {
  Process process("/usr/bin/env",
                  {"mpirun", "-q", "--oversubscribe", "--bind-to", "none", "-n", std::to_string(ranks),
                   std::getenv("LOCKSTEP_MPI_RANK"), what, std::to_string(ranks), std::to_string(deadline)});
  return process.finish(std::chrono::seconds(100));
}

/// Retries with a longer deadline if this machine was too slow: MPI's own start counts as well, and each step. `said`
/// returns the expected text for a deadline.
Ended mpirun_in_vain(int ranks, const std::string& what, const std::function<std::string(const std::string&)>& said) {
  Ended ended;
  for (const char* deadline : {"1.5", "6", "24"}) {
    ended = mpirun(ranks, what, std::stod(deadline));
    if (ended.err.find(said(std::string(deadline) + " s")) != std::string::npos) break;
  }
  return ended;
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
  const std::string said = "all-reduce between 2 MPI ranks: rank 1: sent nothing for ";
  const Ended ended = mpirun_in_vain(2, "stopped", [&](const std::string& deadline) { return said + deadline; });
  EXPECT_NE(ended.code, 0);
  EXPECT_THAT(ended.err, HasSubstr(said));
}

TEST(Mpi, AKilledRankEndsTheJob) {
  const Ended ended = mpirun(3, "killed", 60);
  EXPECT_EQ(ended.code, 128 + SIGKILL);
  EXPECT_THAT(ended.out + ended.err, Not(HasSubstr("sent nothing")));
}

TEST(Mpi, ARankThatIsSilentIsNamedAfterTheDeadline) {
  const std::string said = "rank 2: sent nothing for ";
  const Ended ended = mpirun_in_vain(3, "asleep", [&](const std::string& deadline) { return said + deadline; });
  EXPECT_NE(ended.code, 0);
  EXPECT_THAT(ended.err, HasSubstr(said));
}

TEST(Mpi, ARankThatDoesNotStartIsWaitedForUntilTheDeadlineOnly) {
  const Ended ended = mpirun(2, "late", 1.5);
  EXPECT_NE(ended.code, 0);
  EXPECT_THAT(ended.err, HasSubstr("MPI: not all of 2 ranks have started within 1.5 s"));
}

TEST(Mpi, AProcessThatNoLauncherStartedIsTold) {
  Process process(std::getenv("LOCKSTEP_MPI_RANK"), {"sums", "2", "1"});
  const Ended ended = process.finish();
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, AllOf(HasSubstr("mpirun"), HasSubstr("this process is not one")));
}

TEST(Mpi, AnotherNumberOfRanksIsRefused) {
  Process process("/usr/bin/env",
                  {"mpirun", "-q", "--oversubscribe", "-n", "2", std::getenv("LOCKSTEP_MPI_RANK"), "sums", "3", "60"});
  const Ended ended = process.finish();
  EXPECT_NE(ended.code, 0);
  EXPECT_THAT(ended.err, HasSubstr("MPI has 2 ranks and the cluster 3 workers"));
}

}  // namespace
}  // namespace lockstep::testing
