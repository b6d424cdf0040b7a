#include "base/denormals.h"

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace lockstep::base {
namespace {

#if defined(__x86_64__) || defined(__i386__)
constexpr uint64_t kFlush = 0x8040;  // flush to zero, denormals are zero
uint64_t control() { return _mm_getcsr(); }
void set_control(uint64_t value) { _mm_setcsr(static_cast<unsigned>(value)); }
#elif defined(__aarch64__)
constexpr uint64_t kFlush = uint64_t{1} << 24;
uint64_t control() {
  uint64_t value = 0;
  asm volatile("mrs %0, fpcr" : "=r"(value));
  return value;
}
void set_control(uint64_t value) { asm volatile("msr fpcr, %0" ::"r"(value)); }
#else
constexpr uint64_t kFlush = 0;
uint64_t control() { return 0; }
void set_control(uint64_t) {}
#endif

}  // namespace

FlushDenormals::FlushDenormals() : before_(control()) {
  if ((before_ & kFlush) != kFlush) set_control(before_ | kFlush);
}

void flush_denormals_for_good() { set_control(control() | kFlush); }

FlushDenormals::~FlushDenormals() {
  if ((before_ & kFlush) != kFlush) set_control(before_);
}

}  // namespace lockstep::base
