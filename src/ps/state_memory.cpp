#include "ps/state_memory.h"

#include "lockstep/error.h"

namespace lockstep::ps {
namespace {

constexpr size_t kLine = 64;

}  // namespace

BufferLayout::BufferLayout(size_t parameters, size_t slots, size_t page)
    : parameters_(parameters),
      slots_(slots),
      part_bytes_(round_up(parameters * sizeof(float), kLine)),
      bytes_(round_up(kLine + (slots + 1) * part_bytes_, page)) {}

std::atomic<uint64_t>& BufferLayout::updates_in_place(std::byte* buffer) const {
  static_assert(sizeof(std::atomic<uint64_t>) == sizeof(uint64_t) && std::atomic<uint64_t>::is_always_lock_free);
  return *reinterpret_cast<std::atomic<uint64_t>*>(buffer);
}

std::span<float> BufferLayout::part(std::byte* buffer, size_t i) const {
  return {reinterpret_cast<float*>(buffer + kLine + i * part_bytes_), parameters_};
}

PlainMemory::PlainMemory(const BufferLayout& layout, size_t buffers) : bytes_(layout.bytes()) {
  for (size_t i = 0; i < buffers; ++i) buffers_.emplace_back(bytes_);
}

bool PlainMemory::grow() {
  try {
    buffers_.emplace_back(bytes_);
  } catch (const IoError&) {
    return false;
  }
  return true;
}

}  // namespace lockstep::ps
