// Scalars read from event files of TensorBoard.
#include "observe/tensorboard/event_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "lockstep/error.h"
#include "observe/event_reader.h"
#include "observe/tensorboard/summary_writer.h"

namespace lockstep::observe {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string framed(const tensorboard::Event& event) {
  const std::string data = event.SerializeAsString();
  const uint64_t length = data.size();
  std::string head(8, '\0');
  std::memcpy(head.data(), &length, 8);
  const auto checksum = [](const std::string& bytes) {
    const uint32_t crc = testing::plain_mask(testing::plain_crc32c(bytes));
    std::string text(4, '\0');
    std::memcpy(text.data(), &crc, 4);
    return text;
  };
  return head + checksum(head) + data + checksum(data);
}

Scalars read(const std::string& bytes, const std::string& tag) {
  return read_scalars({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, tag, "events");
}

/// An event as TensorFlow 2 writes it: a scalar is a tensor.
tensorboard::Event tensor_event(int64_t step, double value, bool as_bytes) {
  tensorboard::Event event;
  event.set_wall_time(1000 + static_cast<double>(step));
  event.set_step(step);
  auto* one = event.mutable_summary()->add_value();
  one->set_tag("epoch_loss");
  auto* tensor = one->mutable_tensor();
  const auto number = static_cast<float>(value);
  tensor->set_dtype(tensorboard::FLOAT);
  if (as_bytes) {
    tensor->set_tensor_content(std::string(reinterpret_cast<const char*>(&number), sizeof number));
  } else {
    tensor->add_float_val(number);
  }
  return event;
}

TEST(EventReader, ScalarsOfOurOwnFilesAreRead) {
  const lockstep::testing::TempDir folder;
  {
    SummaryWriter writer(folder / "a/b", [](const std::string&) {});
    writer.scalar("loss", 10, 2.5);
    writer.scalar("accuracy", 10, 0.5);
    writer.scalar("loss", 20, 1.25);
  }
  const Scalars read = read_scalars_of(folder.path(), "loss");
  ASSERT_EQ(read.scalars.size(), 2U);
  EXPECT_EQ(read.scalars[1].step, 20);
  EXPECT_EQ(read.scalars[1].value, 1.25);
  EXPECT_GT(read.scalars[1].time, 1.7e9);
  EXPECT_THAT(read.tags, ElementsAre("accuracy", "loss"));
}

TEST(EventReader, TensorsWithOneNumberAreScalars) {
  const std::string bytes = framed(tensor_event(1, 0.5, false)) + framed(tensor_event(2, 0.25, true));
  const Scalars found = read(bytes, "epoch_loss");
  ASSERT_EQ(found.scalars.size(), 2U);
  EXPECT_EQ(found.scalars[0].value, 0.5);
  EXPECT_EQ(found.scalars[1].value, 0.25);
  EXPECT_EQ(found.scalars[1].time, 1002);
}

TEST(EventReader, EveryDamagedByteIsNoticedAndACutFileIsReadUpToThere) {
  const std::string first = framed(tensor_event(1, 0.5, false));
  const std::string bytes = first + framed(tensor_event(2, 0.25, false));
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    EXPECT_THAT(lockstep::testing::message_of<DataError>([&] { (void)read(damaged, "epoch_loss"); }),
                HasSubstr(i < first.size() ? "events: record 1 at byte 0" : "events: record 2 at byte"));
  }
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(read(bytes.substr(0, size), "epoch_loss").scalars.size(), size < first.size() ? 0U : 1U) << size;
  }
}

TEST(EventReader, WhatIsNotThereIsNamedBesideWhatIs) {
  const lockstep::testing::TempDir folder;
  const auto refusal = [&] {
    return lockstep::testing::message_of<DataError>([&] { (void)read_scalars_of(folder.path(), "accuracy"); });
  };
  EXPECT_THAT(refusal(), HasSubstr("has no event files of TensorBoard"));
  {
    SummaryWriter(folder.path(), [](const std::string&) {}).scalar("loss", 1, 1);
  }
  EXPECT_THAT(refusal(), AllOf(HasSubstr("has no scalar 'accuracy'"), HasSubstr("it has loss")));
}

}  // namespace
}  // namespace lockstep::observe
