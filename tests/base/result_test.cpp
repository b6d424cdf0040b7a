// Failures as data: their fields, and the one line that people read.
#include "base/result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "base/temp_dir.h"

namespace lockstep::base {
namespace {

using lockstep::testing::message_of;
using ::testing::ElementsAre;

TEST(Failure, ReadsFromTheOutsideInAndNamesWhoseFaultItIs) {
  Failure failure{FailureKind::timeout, "sent nothing for 5 s"};
  failure.ranks = {2, 0};
  EXPECT_EQ(failure.message(), "rank 2, rank 0: sent nothing for 5 s");
  failure = std::move(failure).because("all-reduce of 8 bytes").because("worker:1");
  EXPECT_EQ(failure.message(), "worker:1: all-reduce of 8 bytes: rank 2, rank 0: sent nothing for 5 s");
  EXPECT_EQ(failure.text, "sent nothing for 5 s");

  const Failure named = std::move(failure).named({"worker:3", "worker:4"});
  EXPECT_THAT(named.roles, ElementsAre("rank 2", "worker:3"));
  EXPECT_EQ(named.message(), "worker:1: all-reduce of 8 bytes: rank 2, worker:3: sent nothing for 5 s");
  EXPECT_EQ(named.kind, FailureKind::timeout);

  const Failure at{FailureKind::refused, "answered with a frame of kind 3", {"ps:0"}, "n1:4000"};
  EXPECT_EQ(at.message(), "ps:0 at n1:4000: answered with a frame of kind 3");
}

TEST(Failure, OfAnExceptionKeepsItsKindErrorAndPath) {
  const Failure full = Failure::of(IoError("cannot write runs/a: no room", ENOSPC, "runs/a"));
  EXPECT_EQ(full.kind, FailureKind::io);
  EXPECT_EQ(full.error_number, ENOSPC);
  EXPECT_EQ(full.path, "runs/a");
  EXPECT_EQ(full.message(), "cannot write runs/a: no room");
  EXPECT_EQ(Failure::of(LimitError("open files")).kind, FailureKind::limit);
  EXPECT_EQ(Failure::of(UsageError("x")).kind, FailureKind::usage);
  EXPECT_EQ(Failure::of(DataError("x")).kind, FailureKind::corrupt);
  EXPECT_EQ(Failure::of(std::runtime_error("x")).kind, FailureKind::other);
}

TEST(Failure, IsThrownAsAUsageErrorOnlyWhereTheUserCanMendIt) {
  const Status wrong = Failure{FailureKind::usage, "no such key"};
  EXPECT_EQ(message_of<UsageError>([&] { wrong.or_throw(); }), "no such key");
  const Status gone = Failure{FailureKind::gone, "connection lost"};
  EXPECT_THROW(gone.or_throw(), Error);
  EXPECT_NO_THROW(Status().or_throw());
  try {
    static_cast<void>(Result<int>(gone.failure()).value_or_throw());
    ADD_FAILURE();
  } catch (const UsageError&) {
    ADD_FAILURE() << "trying again may help";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "connection lost");
  }
  EXPECT_EQ(Result<int>(3).value_or_throw(), 3);
}

TEST(Failure, KindsHaveNames) {
  EXPECT_EQ(name(FailureKind::other), "other");
  EXPECT_EQ(name(FailureKind::interrupted), "interrupted");
}

}  // namespace
}  // namespace lockstep::base
