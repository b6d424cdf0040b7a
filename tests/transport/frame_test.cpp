// The header of a frame on the wire: 64 bytes that survive a round trip; all invalid headers are refused.
#include "transport/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "transport/copy.h"
#include "transport/streams.h"

namespace lockstep::transport {
namespace {

using ::testing::HasSubstr;

const Header kHeader{.kind = 1,
                     .flags = 2,
                     .element = 3,
                     .sequence = 4,
                     .version = uint64_t{5} << 40,
                     .offset = 6,
                     .count = 7,
                     .extra = ~uint64_t{0}};
constexpr size_t kLimit = 1000;

std::string refusal(std::span<const std::byte> message, size_t size) {
  const auto header = decode_header(message, size, kLimit);
  return header ? "" : header.failure().message();
}

TEST(FrameHeader, ComesBackAsItWas) {
  const HeaderBytes bytes = encode_header(kHeader, 999);
  const auto header = decode_header(bytes, kHeaderBytes + 999, kLimit);
  ASSERT_TRUE(header) << header.failure().message();
  EXPECT_EQ(std::memcmp(&header.value(), &kHeader, sizeof(kHeader)), 0);
}

TEST(FrameHeader, LiesOnTheWireAsTheFormatSays) {
  const HeaderBytes bytes = encode_header(kHeader, 0x0102);
  const auto at = [&](size_t i) { return std::to_integer<int>(bytes[i]); };
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), 4), "LSK1");
  EXPECT_EQ(at(4), 1);   // format
  EXPECT_EQ(at(6), 1);   // kind
  EXPECT_EQ(at(8), 2);   // flags
  EXPECT_EQ(at(12), 3);  // element
  EXPECT_EQ(at(16), 4);  // sequence
  EXPECT_EQ(at(29), 5);  // version, its sixth byte
  EXPECT_EQ(at(32), 6);  // offset
  EXPECT_EQ(at(40), 7);  // count
  EXPECT_EQ(at(55), 255);
  EXPECT_EQ(at(56), 2);  // size of the payload, low byte first
  EXPECT_EQ(at(57), 1);
}

TEST(FrameHeader, IsBelievedOnlyWhereItFits) {
  HeaderBytes bytes = encode_header(kHeader, 10);
  EXPECT_THAT(refusal(std::span(bytes).first(63), 63), HasSubstr("63 bytes is too short for a frame"));
  EXPECT_THAT(refusal({}, 0), HasSubstr("0 bytes is too short for a frame"));
  EXPECT_THAT(refusal(bytes, kHeaderBytes + 9), HasSubstr("announces 10 bytes of payload but has 9"));
  EXPECT_THAT(refusal(bytes, kHeaderBytes + 11), HasSubstr("but has 11"));
  const HeaderBytes large = encode_header(kHeader, kLimit + 1);
  EXPECT_THAT(refusal(large, kHeaderBytes + kLimit + 1), HasSubstr("1001 bytes of payload; at most 1000"));
  bytes[4] = std::byte{2};
  EXPECT_THAT(refusal(bytes, kHeaderBytes + 10), HasSubstr("format 2"));
  bytes[0] = std::byte{'X'};
  EXPECT_THAT(refusal(bytes, kHeaderBytes + 10), HasSubstr("another protocol"));
}

TEST(CopyPastCaches, CopiesEveryByteAndNoOther) {
  const auto source = testing::pattern(5000, 3);
  for (const size_t start : {0, 1, 15, 16, 63}) {
    for (const size_t size : {0, 1, 5, 64, 127, 1000, 4096, 4900}) {
      std::vector<std::byte> target(5100, std::byte{7});
      std::vector<std::byte> expected = target;
      std::memcpy(expected.data() + start, source.data() + 3, size);
      copy_past_caches(std::span(source).subspan(3, size), std::span(target).subspan(start, size));
      EXPECT_EQ(target, expected) << start << " " << size;
    }
  }
}

}  // namespace
}  // namespace lockstep::transport
