#include "tensor/buffer.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "base/limits.h"
#include "base/memory.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

[[noreturn]] void refuse(size_t bytes) {
  if (const std::new_handler handler =
          std::get_new_handler()) {  // as operator new does; the handler may end the program
    try {
      handler();
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): the error below says more
    }
  }
  throw LimitError(base::memory_limit_text() + " (" + std::to_string(bytes) + " bytes were refused)");
}

}  // namespace

Buffer::Buffer(size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  base::require_memory(bytes);
  constexpr size_t kAlignment = 128;
  const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  void* memory = rounded < bytes ? nullptr : std::aligned_alloc(kAlignment, rounded);
  if (memory == nullptr) refuse(bytes);
  std::memset(memory, 0, rounded);
  data_.reset(static_cast<std::byte*>(memory));
}

void Buffer::Free::operator()(std::byte* data) const { std::free(data); }

}  // namespace lockstep
