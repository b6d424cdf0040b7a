#include "wire/frames.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "transport/copy.h"

namespace lockstep::wire {
namespace {

using transport::Element;

constexpr size_t kLargeBytes =
    512 << 10;  ///< frame size from which the elements are part of a tensor that no cache holds

/// Returns the bytes of a frame's elements, checked against its payload.
size_t element_bytes(const transport::Frame& frame) {
  const transport::Header& header = frame.header;
  if (header.count == 0) return 0;
  if (header.element < static_cast<uint32_t>(Element::kFloat32) ||
      header.element > static_cast<uint32_t>(Element::kFloat16)) {
    throw DataError(fmt::format("frame with elements of unknown type {}", header.element));
  }
  const size_t each = transport::bytes_of(static_cast<Element>(header.element));
  if (header.count > frame.payload_size() / each) {
    throw DataError(fmt::format("{} elements do not fit into a frame of {} bytes", header.count, frame.payload_size()));
  }
  return header.count * each;
}

/// Copies bytes [begin, begin + to.size()) of the payload.
void copy_part(const transport::Frame& frame, size_t begin, std::span<std::byte> to) {
  const bool large = to.size() >= kLargeBytes;
  for (std::span<const std::byte> piece : frame.pieces()) {
    if (begin >= piece.size()) {
      begin -= piece.size();
      continue;
    }
    const size_t count = std::min(piece.size() - begin, to.size());
    if (large) {
      transport::copy_past_caches(piece.subspan(begin, count), to.first(count));
    } else {
      std::memcpy(to.data(), piece.data() + begin, count);
    }
    to = to.subspan(count);
    begin = 0;
    if (to.empty()) return;
  }
}

}  // namespace

void check_elements(const transport::Frame& frame) { element_bytes(frame); }

std::string message_of(const transport::Frame& frame) {
  const size_t begin = element_bytes(frame);
  std::string text(frame.payload_size() - begin, '\0');
  copy_part(frame, begin, std::as_writable_bytes(std::span(text)));
  return text;
}

base::Status send_text(transport::Stream& stream, const transport::Header& header, const std::string& text) {
  const auto kept = std::make_shared<const std::string>(text);
  return stream.write(header, std::as_bytes(std::span(*kept)), kept);
}

base::Status send(transport::Stream& stream, const transport::Header& header,
                  const google::protobuf::MessageLite& message) {
  return send_text(stream, header, message.SerializeAsString());
}

ElementSender::ElementSender(const transport::Header& header, std::span<const float> values, Element element,
                             std::shared_ptr<const void> hold, std::optional<std::string> last)
    : header_(header), values_(values), element_(element), hold_(std::move(hold)), last_(std::move(last)) {
  header_.element = static_cast<uint32_t>(element);
}

base::Status ElementSender::send_next(transport::Stream& stream) {
  struct Kept {
    std::shared_ptr<const void> hold;
    std::string message;
    std::vector<std::byte> packed;
  };
  const std::span<const float> slice = values_.subspan(sent_, std::min(kSliceElements, values_.size() - sent_));
  sent_ += slice.size();
  done_ = sent_ == values_.size();
  const auto kept = std::make_shared<Kept>();
  kept->hold = hold_;
  std::array<std::span<const std::byte>, 2> pieces{std::as_bytes(slice), {}};
  if (element_ != Element::kFloat32) {
    kept->packed.resize(slice.size() * transport::bytes_of(element_));
    transport::pack(element_, slice, kept->packed);
    pieces[0] = kept->packed;
  }
  header_.count = slice.size();
  if (done_ && last_) {
    header_.flags |= kLast;
    kept->message = std::move(*last_);
    pieces[1] = std::as_bytes(std::span(kept->message));
  }
  if (done_) hold_.reset();
  base::Status sent = stream.write(header_, pieces, kept);
  header_.offset += slice.size();
  return sent;
}

base::Status send_elements(transport::Stream& stream, transport::Header header, std::span<const float> values,
                           Element element, const std::shared_ptr<const void>& hold,
                           const google::protobuf::MessageLite* last) {
  ElementSender sender(header, values, element, hold,
                       last == nullptr ? std::nullopt : std::optional(last->SerializeAsString()));
  base::Status sent;
  do sent = sender.send_next(stream);
  while (sent && !sender.done());
  return sent;
}

size_t take_elements(const transport::Frame& frame, std::span<float> to) {
  const size_t bytes = element_bytes(frame);
  const transport::Header& header = frame.header;
  if (header.offset > to.size() || header.count > to.size() - header.offset) {
    throw DataError(fmt::format("frame with {1} elements from {0} on does not fit: there are {2}", header.offset,
                                header.count, to.size()));
  }
  const std::span<float> place = to.subspan(header.offset, header.count);
  if (place.empty()) return 0;
  const auto element = static_cast<Element>(header.element);
  if (element == Element::kFloat32) {
    copy_part(frame, 0, std::as_writable_bytes(place));
    return place.size();
  }
  std::vector<std::byte> packed(bytes);
  copy_part(frame, 0, packed);
  transport::unpack(element, packed, place);
  return place.size();
}

}  // namespace lockstep::wire
