// Numbers on the wire against plain references: every 16-bit pattern, and float32 of all kinds.
#include "transport/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "transport/streams.h"

namespace lockstep::transport {
namespace {

using ::testing::HasSubstr;

/// Returns the value of a 16-bit pattern with this many bits of exponent and fraction, by definition.
double value_of(uint16_t bits, int exponent_bits, int fraction_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return fraction == 0 ? sign * INFINITY : NAN;
  const double scaled = std::ldexp(fraction, -fraction_bits);
  return sign * (exponent == 0 ? std::ldexp(scaled, 1 - bias) : std::ldexp(1 + scaled, exponent - bias));
}

struct Format {
  Element element;
  int exponent_bits;
  int fraction_bits;
};

class Convert : public ::testing::TestWithParam<Format> {
 protected:
  [[nodiscard]] double meaning(uint16_t bits) const {
    return value_of(bits, GetParam().exponent_bits, GetParam().fraction_bits);
  }
  [[nodiscard]] uint16_t infinity() const {
    return static_cast<uint16_t>(0x7fff & ~((1 << GetParam().fraction_bits) - 1));
  }

  /// Finds the nearest pattern by search, ties to even; half a unit past the largest is infinite.
  [[nodiscard]] uint16_t nearest(float value) const {
    const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
    const double magnitude = std::fabs(static_cast<double>(value));
    uint16_t low = 0;
    uint16_t high = infinity();
    while (high - low > 1) {
      const auto middle = static_cast<uint16_t>((low + high) / 2);
      (meaning(middle) <= magnitude ? low : high) = middle;
    }
    const double below = meaning(low);
    const double above = high == infinity() ? 2 * below - meaning(static_cast<uint16_t>(low - 1)) : meaning(high);
    const bool up = magnitude - below > above - magnitude || (magnitude - below == above - magnitude && low % 2 == 1);
    return static_cast<uint16_t>(sign | (up ? high : low));
  }

  [[nodiscard]] std::vector<uint16_t> packed(const std::vector<float>& values) const {
    std::vector<uint16_t> bits(values.size());
    pack(GetParam().element, values, std::as_writable_bytes(std::span(bits)));
    return bits;
  }
};

TEST_P(Convert, EveryPatternHasItsValueAndComesBack) {
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  std::vector<float> values(all.size());
  unpack(GetParam().element, std::as_bytes(std::span(all)), values);
  const std::vector<uint16_t> back = packed(values);
  for (size_t i = 0; i < all.size(); ++i) {
    const double expected = meaning(all[i]);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(values[i])) << i;
      ASSERT_TRUE(std::isnan(meaning(back[i]))) << i;
    } else {
      ASSERT_EQ(static_cast<double>(values[i]), expected) << i;
      ASSERT_EQ(std::signbit(values[i]), std::signbit(expected)) << i;
      ASSERT_EQ(back[i], all[i]);
    }
  }
}

TEST_P(Convert, RoundsToNearestAndTiesToEven) {
  std::vector<float> values;
  const uint16_t end = infinity();
  for (uint32_t i = 0; i + 1 < end; i += 7) {
    const double low = meaning(static_cast<uint16_t>(i));
    const double high = meaning(static_cast<uint16_t>(i + 1));
    const auto middle = static_cast<float>((low + high) / 2);  // exact: one more bit
    for (const float value : {middle, std::nextafter(middle, 0.0F), std::nextafter(middle, INFINITY)}) {
      values.push_back(value);
      values.push_back(-value);
    }
  }
  std::mt19937 random(3);
  for (int i = 0; i < 20000; ++i) {
    const auto value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (std::isfinite(value)) values.push_back(value);
  }
  for (const float special : {0.0F, 65504.0F, 65519.996F, 65520.0F, 65536.0F, std::numeric_limits<float>::max(),
                              std::numeric_limits<float>::min(), std::numeric_limits<float>::denorm_min(), 1e-40F,
                              5.9604645e-8F, 2.9802322e-8F, 2.9802326e-8F, 6.1035156e-5F, 6.0975552e-5F}) {
    values.push_back(special);
    values.push_back(-special);
  }
  const std::vector<uint16_t> bits = packed(values);
  for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(bits[i], nearest(values[i])) << values[i];
}

TEST_P(Convert, InfinitiesAndNansStayWhatTheyAre) {
  const std::vector<uint16_t> bits =
      packed({INFINITY, -INFINITY, NAN, -NAN, std::bit_cast<float>(0x7f800001), std::bit_cast<float>(0xffffffff)});
  EXPECT_EQ(bits[0], infinity());
  EXPECT_EQ(bits[1], infinity() | 0x8000);
  for (size_t i = 2; i < bits.size(); ++i) EXPECT_TRUE(std::isnan(meaning(bits[i]))) << i;
}

TEST_P(Convert, AnyCountAtAnyAddress) {
  std::vector<float> values(100);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) - 50;
  const std::vector<uint16_t> all = packed(values);
  for (size_t count = 0; count <= values.size(); ++count) {
    std::vector<std::byte> bytes(2 * count + 3, std::byte{9});
    pack(GetParam().element, std::span(values).first(count), std::span(bytes).subspan(1, 2 * count));
    ASSERT_EQ(std::memcmp(bytes.data() + 1, all.data(), 2 * count), 0);
    EXPECT_EQ(bytes.front(), std::byte{9});
    EXPECT_EQ(bytes[2 * count + 1], std::byte{9});
    std::vector<float> back(count + 1, 77);
    unpack(GetParam().element, std::span(bytes).subspan(1, 2 * count), std::span(back).first(count));
    ASSERT_TRUE(std::equal(values.begin(), values.begin() + static_cast<ptrdiff_t>(count), back.begin()));
    EXPECT_EQ(back[count], 77);
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, Convert,
                         ::testing::Values(Format{Element::kBfloat16, 8, 7}, Format{Element::kFloat16, 5, 10}),
                         [](const auto& tested) {
                           return tested.param.element == Element::kFloat16 ? "float16" : "bfloat16";
                         });

TEST(Unpack, AFramesNumbersMayLieInPiecesThatPartThem) {
  std::vector<float> values(200'001);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 200);
  Server server(testing::any_port(), testing::echo);
  const auto stream = testing::connected(server);
  for (const Element element : {Element::kFloat32, Element::kBfloat16, Element::kFloat16}) {
    std::vector<std::byte> bytes(values.size() * bytes_of(element));
    pack(element, values, bytes);
    Header header;
    header.element = static_cast<uint32_t>(element);
    std::vector<std::span<const std::byte>> pieces;
    for (size_t at = 0; at < bytes.size(); at += 9973) {
      pieces.push_back(std::span(bytes).subspan(at, std::min<size_t>(9973, bytes.size() - at)));
    }
    ASSERT_TRUE(stream->write(header, pieces, nullptr));
    const auto frame = stream->read();
    ASSERT_TRUE(frame);
    std::vector<float> back(values.size());
    const auto done = unpack(frame.value(), back);
    ASSERT_TRUE(done) << done.failure().message();
    EXPECT_EQ(back, values);
    EXPECT_EQ(unpack(frame.value(), std::span(back).first(10)).failure().kind, base::FailureKind::corrupt);
  }
  Header header;
  header.element = 9;
  ASSERT_TRUE(stream->write(header));
  EXPECT_THAT(unpack(stream->read().value(), {}).failure().message(), HasSubstr("type 9"));
}

}  // namespace
}  // namespace lockstep::transport
