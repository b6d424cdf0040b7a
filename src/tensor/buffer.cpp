#include "tensor/buffer.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "lockstep/error.h"

namespace lockstep {
namespace {

/// What can never fit is refused before the system starts to swap or kill.
void require_memory(size_t bytes) {
  const double machine = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  const auto needed = static_cast<double>(bytes);
  if (machine <= 0 || needed <= machine) return;
  std::array<char, 128> text{};
  std::snprintf(text.data(), text.size(), "needs %.1f GB of memory at once; this machine has %.1f GB", needed / 1e9,
                machine / 1e9);
  throw MemoryError(text.data());
}

}  // namespace

Buffer::Buffer(size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  require_memory(bytes);
  constexpr size_t kAlignment = 128;
  const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  void* memory = rounded < bytes ? nullptr : std::aligned_alloc(kAlignment, rounded);
  if (memory == nullptr) throw IoError("out of memory: " + std::to_string(bytes) + " bytes refused");
  std::memset(memory, 0, rounded);
  data_.reset(static_cast<std::byte*>(memory));
}

void Buffer::Free::operator()(std::byte* data) const { std::free(data); }

}  // namespace lockstep
