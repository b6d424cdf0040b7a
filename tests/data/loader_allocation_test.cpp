// A separate program, because it counts every allocation of the process.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "data/loader.h"
#include "data/synthetic.h"

namespace {

std::atomic<int64_t> allocations{0};

void* counted(size_t size, size_t alignment) {
  ++allocations;
  void* memory = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// Not inlined: gcc would see memory from malloc freed by an operator delete, and warn.
[[gnu::noinline]] void* operator new(size_t size) { return counted(size, alignof(std::max_align_t)); }
[[gnu::noinline]] void* operator new(size_t size, std::align_val_t alignment) {
  return counted(size, static_cast<size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

namespace lockstep::data {
namespace {

TEST(Loader, AllocatesNothingAfterItsConstruction) {
  const Dataset dataset = synthetic({.train = 500, .test = 10});
  for (const Shuffle shuffle : {Shuffle::all(), Shuffle::of_buffer(100), Shuffle::none()}) {
    for (const int64_t batch : {1, 64}) {
      Loader loader(dataset.train, {.batch = batch, .shuffle = shuffle, .repeat = 0});
      const int64_t before = allocations;
      for (int i = 0; i < 3000; ++i) loader.next();
      loader.restart();
      loader.next();
      EXPECT_EQ(allocations, before);
    }
  }
}

}  // namespace
}  // namespace lockstep::data
