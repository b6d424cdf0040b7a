// Messages and elements in frames of the transport. The payload of a frame is `count` elements, then a message of
// proto/ where the kind has one. Everything from the network is checked here; invalid input is a DataError. Free
// functions; any thread.
#pragma once

#include <google/protobuf/message_lite.h>

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "lockstep/error.h"
#include "transport/convert.h"
#include "transport/stream.h"

namespace lockstep::wire {

constexpr uint16_t kLast = 1;  ///< flag of the last frame of several

/// Elements per frame. Larger transfers are cut into slices of this size.
constexpr size_t kSliceElements = size_t{1} << 20;

/// Returns the bytes after a frame's elements. Throws DataError if the frame is too short for its elements.
std::string message_of(const transport::Frame& frame);
/// Parses the message after a frame's elements. Throws DataError if it is not of this type.
template <class Message>
Message parse(const transport::Frame& frame) {
  Message message;
  if (!message.ParseFromString(message_of(frame)))
    throw DataError("damaged message in a frame of kind " + std::to_string(frame.header.kind));
  return message;
}
base::Status send(transport::Stream& stream, const transport::Header& header,
                  const google::protobuf::MessageLite& message);
base::Status send_text(transport::Stream& stream, const transport::Header& header, const std::string& text);

/// Sends `values` as frames of `header.kind` from `header.offset` on, in slices, converted to the element type. The
/// last frame carries `last` (may be null) and the flag kLast; at least one frame is sent. In f32 nothing is copied:
/// the values must not change until `hold` is released.
base::Status send_elements(transport::Stream& stream, transport::Header header, std::span<const float> values,
                           transport::Element element, const std::shared_ptr<const void>& hold,
                           const google::protobuf::MessageLite* last);
/// Sends elements like send_elements, a frame at a time, for streams whose writes do not wait.
class ElementSender {
 public:
  /// `last`: serialised; absent: none.
  ElementSender(const transport::Header& header, std::span<const float> values, transport::Element element,
                std::shared_ptr<const void> hold, std::optional<std::string> last);

  [[nodiscard]] bool done() const { return done_; }
  base::Status send_next(transport::Stream& stream);

 private:
  transport::Header header_;
  std::span<const float> values_;
  transport::Element element_;
  std::shared_ptr<const void> hold_;
  std::optional<std::string> last_;
  size_t sent_ = 0;
  bool done_ = false;
};

/// Throws DataError if a frame is too short for its elements, or their type is unknown.
void check_elements(const transport::Frame& frame);
/// Copies a frame's elements to their place; `to` begins at element 0 of the numbering that `offset` uses. Returns
/// their number. Throws DataError if they do not fit.
size_t take_elements(const transport::Frame& frame, std::span<float> to);

}  // namespace lockstep::wire
