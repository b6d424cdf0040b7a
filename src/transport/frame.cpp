#include "transport/frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "transport/copy.h"
#include "transport/received.h"

namespace lockstep::transport {
namespace {

static_assert(std::endian::native == std::endian::little, "the wire is little-endian, and so is every machine so far");

constexpr uint32_t kMagic = 0x314b534c;  // "LSK1"
constexpr uint16_t kFormat = 1;

constexpr size_t kLargePayload = 512 << 10;  // payload size from which it is part of a tensor that no cache holds

struct Wire {
  uint32_t magic = kMagic;
  uint16_t format = kFormat;
  uint16_t kind = 0;
  uint16_t flags = 0;
  uint16_t unused = 0;
  uint32_t element = 0;
  uint64_t sequence = 0;
  uint64_t version = 0;
  uint64_t offset = 0;
  uint64_t count = 0;
  uint64_t extra = 0;
  uint64_t payload_bytes = 0;
};
static_assert(sizeof(Wire) == kHeaderBytes);

}  // namespace

HeaderBytes encode_header(const Header& header, size_t payload_bytes) {
  Wire wire;
  wire.kind = header.kind;
  wire.flags = header.flags;
  wire.element = header.element;
  wire.sequence = header.sequence;
  wire.version = header.version;
  wire.offset = header.offset;
  wire.count = header.count;
  wire.extra = header.extra;
  wire.payload_bytes = payload_bytes;
  return std::bit_cast<HeaderBytes>(wire);
}

base::Result<Header> decode_header(std::span<const std::byte> message, size_t message_bytes, size_t largest_payload) {
  if (message.size() < kHeaderBytes || message_bytes < kHeaderBytes) {
    return base::Failure{base::FailureKind::corrupt,
                         fmt::format("message of {} bytes is too short for a frame: its header alone has {}",
                                     std::min(message.size(), message_bytes), kHeaderBytes)};
  }
  Wire wire;
  std::memcpy(&wire, message.data(), sizeof(wire));
  if (wire.magic != kMagic) {
    return base::Failure{base::FailureKind::corrupt,
                         fmt::format("message starts with {:08x} instead of {:08x}: the peer uses another protocol",
                                     wire.magic, kMagic)};
  }
  if (wire.format != kFormat) {
    return base::Failure{
        base::FailureKind::corrupt,
        fmt::format("frame of format {}, but this program uses format {}: the peer has another version", wire.format,
                    kFormat)};
  }
  if (wire.payload_bytes != message_bytes - kHeaderBytes) {
    return base::Failure{base::FailureKind::corrupt, fmt::format("frame announces {} bytes of payload but has {}",
                                                                 wire.payload_bytes, message_bytes - kHeaderBytes)};
  }
  if (wire.payload_bytes > largest_payload) {
    return base::Failure{base::FailureKind::limit, fmt::format("frame with {} bytes of payload; at most {} are allowed",
                                                               wire.payload_bytes, largest_payload)};
  }
  return Header{.kind = wire.kind,
                .flags = wire.flags,
                .element = wire.element,
                .sequence = wire.sequence,
                .version = wire.version,
                .offset = wire.offset,
                .count = wire.count,
                .extra = wire.extra};
}

/// Access to the private parts of a Frame, for make_frame.
class FrameAccess {
 public:
  static Frame make(const Header& header, std::vector<std::span<const std::byte>> pieces,
                    std::shared_ptr<const void> owner) {
    Frame frame;
    frame.header = header;
    frame.pieces_ = std::move(pieces);
    frame.owner_ = std::move(owner);
    return frame;
  }
};

base::Result<Frame> make_frame(std::span<const std::span<const std::byte>> slices, std::shared_ptr<const void> owner,
                               size_t largest_payload) {
  HeaderBytes start;
  size_t filled = 0;
  size_t message = 0;
  std::vector<std::span<const std::byte>> pieces;
  pieces.reserve(slices.size());
  for (const std::span<const std::byte> slice : slices) {
    if (slice.empty()) continue;
    const size_t taken = std::min(kHeaderBytes - filled, slice.size());
    std::memcpy(start.data() + filled, slice.data(), taken);
    filled += taken;
    message += slice.size();
    if (taken < slice.size()) pieces.push_back(slice.subspan(taken));
  }
  base::Result<Header> header = decode_header(std::span(start).first(filled), message, largest_payload);
  if (!header) return header.failure();
  return FrameAccess::make(header.value(), std::move(pieces), std::move(owner));
}

size_t Frame::payload_size() const {
  size_t size = 0;
  for (const auto& piece : pieces_) size += piece.size();
  return size;
}

std::span<const std::span<const std::byte>> Frame::pieces() const { return pieces_; }

void Frame::copy_to(std::span<std::byte> to) const {
  if (to.size() != payload_size()) {
    throw UsageError(fmt::format("payload of {} bytes does not fit a buffer of {}", payload_size(), to.size()));
  }
  size_t at = 0;
  for (const auto& piece : pieces_) {
    if (to.size() >= kLargePayload) {
      copy_past_caches(piece, to.subspan(at, piece.size()));
    } else {
      std::memcpy(to.data() + at, piece.data(), piece.size());
    }
    at += piece.size();
  }
}

std::string Frame::text() const {
  std::string result;
  result.reserve(payload_size());
  for (const auto& piece : pieces_) result.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  return result;
}

base::Status Stream::write(const Header& header, std::span<const std::byte> payload, std::shared_ptr<const void> hold) {
  return write(header, std::span(&payload, payload.empty() ? 0 : 1), std::move(hold));
}

}  // namespace lockstep::transport
