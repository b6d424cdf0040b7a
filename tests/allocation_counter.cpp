#include "allocation_counter.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

namespace lockstep::testing_support {
namespace {

std::atomic<bool> counting{false};
std::atomic<size_t> ours{0};
std::atomic<size_t> onednn{0};
thread_local bool looking = false;

/// Whether a caller on the stack belongs to libdnnl.
bool called_by_onednn() {
  void* frames[24];
  const int depth = backtrace(frames, 24);
  for (int i = 0; i < depth; ++i) {
    Dl_info info;
    if (dladdr(frames[i], &info) != 0 && info.dli_fname != nullptr &&
        std::strstr(info.dli_fname, "libdnnl") != nullptr) {
      return true;
    }
  }
  return false;
}

void count() {
  if (!counting.load(std::memory_order_relaxed) || looking) return;
  looking = true;
  (called_by_onednn() ? onednn : ours).fetch_add(1, std::memory_order_relaxed);
  looking = false;
}

}  // namespace

void start_counting() {
  void* warm[1];
  backtrace(warm, 1);  // its first call allocates
  ours = 0;
  onednn = 0;
  counting = true;
}

Allocations stop_counting() {
  counting = false;
  return {ours, onednn};
}

void count_allocation() { count(); }

}  // namespace lockstep::testing_support

extern "C" {
void* __libc_malloc(size_t size);       // NOLINT(bugprone-reserved-identifier)
void* __libc_memalign(size_t, size_t);  // NOLINT(bugprone-reserved-identifier)
void* __libc_calloc(size_t, size_t);    // NOLINT(bugprone-reserved-identifier)
void* __libc_realloc(void*, size_t);    // NOLINT(bugprone-reserved-identifier)

void* malloc(size_t size) noexcept {
  lockstep::testing_support::count_allocation();
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) noexcept {
  lockstep::testing_support::count_allocation();
  return __libc_calloc(count, size);
}
void* realloc(void* memory, size_t size) noexcept {
  lockstep::testing_support::count_allocation();
  return __libc_realloc(memory, size);
}
void* aligned_alloc(size_t alignment, size_t size) noexcept {
  lockstep::testing_support::count_allocation();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, size_t alignment, size_t size) noexcept {
  lockstep::testing_support::count_allocation();
  *memory = __libc_memalign(alignment, size);
  return *memory == nullptr ? 12 : 0;
}
}
