// Any message from a peer must become a frame or a failure, however it is cut into pieces. The first byte says where it
// is cut.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "transport/convert.h"
#include "transport/received.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t step = 1 + data[0];
  const std::vector<std::byte> message(reinterpret_cast<const std::byte*>(data) + 1,
                                       reinterpret_cast<const std::byte*>(data) + size);
  std::vector<std::span<const std::byte>> slices;
  for (size_t at = 0; at < message.size(); at += step) {
    slices.push_back(std::span(message).subspan(at, std::min(step, message.size() - at)));
  }
  const auto frame = lockstep::transport::make_frame(slices, nullptr, 4096);
  if (!frame) return 0;
  if (frame.value().payload_size() + lockstep::transport::kHeaderBytes != message.size()) __builtin_trap();
  std::vector<float> numbers(std::min<uint64_t>(frame.value().header.count, 4096));
  (void)lockstep::transport::unpack(frame.value(), numbers);
  return 0;
}
