// Messages and elements in frames of the transport. The payload of a frame is `count` elements, then a message of
// proto/ where the kind has one. What comes from the network is checked here: what makes no sense is a DataError. Free
// functions; any thread.
#pragma once

#include <google/protobuf/message_lite.h>

#include <memory>
#include <span>
#include <string>

#include "lockstep/error.h"
#include "transport/convert.h"
#include "transport/stream.h"

namespace lockstep::wire {

constexpr uint16_t kLast = 1;  ///< a flag: the last frame of several

/// Elements per frame: a large transfer goes in slices of this size.
constexpr size_t kSliceElements = size_t{1} << 20;

/// The bytes after a frame's elements; a DataError where the elements do not fit into it.
std::string message_of(const transport::Frame& frame);
/// The message after a frame's elements; a DataError where it is not one of that type.
template <class Message>
Message parse(const transport::Frame& frame) {
  Message message;
  if (!message.ParseFromString(message_of(frame)))
    throw DataError("a damaged message in a frame of kind " + std::to_string(frame.header.kind));
  return message;
}
base::Status send(transport::Stream& stream, const transport::Header& header,
                  const google::protobuf::MessageLite& message);
base::Status send_text(transport::Stream& stream, const transport::Header& header, const std::string& text);

/// Sends `values` as frames of `header.kind` from `header.offset` on, in slices, in the element type. `last` (may be
/// null) goes with the last of them, which has flag kLast then; there is at least one frame. In f32 nothing is copied:
/// the values must not change until `hold` is released.
base::Status send_elements(transport::Stream& stream, transport::Header header, std::span<const float> values,
                           transport::Element element, const std::shared_ptr<const void>& hold,
                           const google::protobuf::MessageLite* last);
/// A DataError where a frame is too short for the elements that it announces, or their type is unknown.
void check_elements(const transport::Frame& frame);
/// Writes a frame's elements to their place: `to` begins at element 0 of what `offset` counts in. A DataError where
/// they do not fit. Gives how many.
size_t take_elements(const transport::Frame& frame, std::span<float> to);

}  // namespace lockstep::wire
