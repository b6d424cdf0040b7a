// Helpers for the tests of all-reduce: the same training over every engine.
#pragma once

#include "e2e/cluster.h"

namespace lockstep::testing {

class AllReduceTest : public ClusterTest {
 protected:
  /// Trains `words` over an engine, started as a user would.
  [[nodiscard]] Ended run_over(const std::string& engine, int members, const Words& words) const {
    const std::string count = std::to_string(members);
    if (engine == "inprocess") return run(words + Words{"--replicas", count});
    if (engine == "gloo") return run(words + Words{"--workers", count, "--strategy", "allreduce"});
    return mpirun(members, words);
  }
  [[nodiscard]] Ended mpirun(int ranks, const Words& words) const {
    ProcessOptions with = options();
    with.environment.emplace_back("OMPI_ALLOW_RUN_AS_ROOT", "1");
    with.environment.emplace_back("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    const Words launcher{"mpirun", "-q", "--oversubscribe", "--bind-to", "none", "-n", std::to_string(ranks)};
    return Process("/usr/bin/env", launcher + Words{program_path()} + words, with).finish();
  }
  [[nodiscard]] Result train_over(const std::string& engine, int members, const std::string& name,
                                  const Words& words) const {
    const Ended ended = run_over(engine, members, Words{"train"} + words + Words{"--run-dir", name});
    EXPECT_EQ(ended.code, 0) << engine << ": " << ended.out << ended.err;
    return result(name);
  }
  [[nodiscard]] Result train_together(const std::string& name, const Words& words, int members = 3) const {
    return train_over("gloo", members, name, words);
  }
  /// Resumes a run and returns its result.
  [[nodiscard]] Result resume(const std::string& name, const Words& words) const {
    const Ended ended = run(Words{"train", "--resume", name, "--quiet"} + words);
    EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
    return result(name);
  }
  static Words engines() {
    Words found{"inprocess"};
    if (std::getenv("LOCKSTEP_HAS_GLOO") != nullptr) found.emplace_back("gloo");  // NOLINT(concurrency-mt-unsafe)
    if (std::getenv("LOCKSTEP_HAS_MPI") != nullptr) found.emplace_back("mpi");    // NOLINT(concurrency-mt-unsafe)
    return found;
  }
};

}  // namespace lockstep::testing
