// Failures as data: from an exception to a line of JSON and back.
#include "launch/role_failure.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>

#include "base/temp_dir.h"

namespace lockstep::launch {
namespace {

using testing::TempDir;

TEST(RoleFailure, KeepsAllFieldsOnItsWay) {
  RoleFailure failure;
  failure.kind = RoleFailure::Kind::io;
  failure.role = "worker:1";
  failure.error_number = ENOSPC;
  failure.path = "run/checkpoints/step-1.ckpt";
  failure.saved = 7;
  failure.step = 9;
  failure.output = "run";
  failure.text = "cannot write run/checkpoints/step-1.ckpt: No space left on device";
  const std::optional<RoleFailure> back = parse_failure(to_json(failure));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->kind, failure.kind);
  EXPECT_EQ(back->role, failure.role);
  EXPECT_EQ(back->error_number, failure.error_number);
  EXPECT_EQ(back->path, failure.path);
  EXPECT_EQ(back->saved, failure.saved);
  EXPECT_EQ(back->step, failure.step);
  EXPECT_EQ(back->output, failure.output);
  EXPECT_EQ(back->text, failure.text);
}

TEST(RoleFailure, SaysWhatKindOfErrorItWas) {
  EXPECT_EQ(failure_of(UsageError("--lr: no number")).kind, RoleFailure::Kind::usage);
  EXPECT_EQ(failure_of(DataError("damaged")).kind, RoleFailure::Kind::data);
  EXPECT_EQ(failure_of(IoError("cannot open x", ENOENT, "x")).path, "x");
  EXPECT_EQ(failure_of(LimitError("too many open files")).kind, RoleFailure::Kind::limit);
  EXPECT_EQ(failure_of(Error("else")).kind, RoleFailure::Kind::other);
  const RoleFailure diverged = failure_of(NonFiniteError("the loss became nan", 12));
  EXPECT_EQ(diverged.kind, RoleFailure::Kind::not_finite);
  EXPECT_EQ(diverged.step, 12U);
}

TEST(RoleFailure, OfARunHasItsFolderBesideItsText) {
  RoleFailure failure;
  failure.text = "worker:1 died";
  EXPECT_STREQ(RunError(failure).what(), "worker:1 died");
  failure.output = "runs/lr-1";
  const RunError error(failure);
  EXPECT_STREQ(error.what(), "worker:1 died; partial output is in runs/lr-1");
  EXPECT_EQ(failure_of(error).text, "worker:1 died");
  EXPECT_EQ(failure_of(error).output, "runs/lr-1");
  failure.saved = 40;
  EXPECT_STREQ(RunError(failure).what(),
               "worker:1 died; step 40 is saved: `lockstep train --resume runs/lr-1` resumes from it");
  failure.kind = RoleFailure::Kind::not_finite;
  EXPECT_STREQ(RunError(failure).what(), "worker:1 died; partial output is in runs/lr-1") << "it would fail again";
}

TEST(RoleFailure, IsReadFromAFileWhereThereIsOne) {
  const TempDir folder;
  EXPECT_FALSE(read_failure(folder / "failure.json"));
  std::ofstream(folder / "failure.json") << to_json(failure_of(DataError("damaged"))) << "\n";
  EXPECT_EQ(read_failure(folder / "failure.json")->text, "damaged");
  std::ofstream(folder / "failure.json") << "no such line\n";
  EXPECT_FALSE(read_failure(folder / "failure.json"));
}

}  // namespace
}  // namespace lockstep::launch
