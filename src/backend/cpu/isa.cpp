#include "backend/cpu/isa.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string>
#include <utility>

#include "base/suggest.h"
#include "dnnl.hpp"
#include "hwy/targets.h"
#include "lockstep/error.h"

namespace lockstep::backend::cpu {
namespace {

constexpr std::array<std::string_view, 3> kNames{"sse4", "avx2", "avx512"};
constexpr int64_t kAvx512Targets = HWY_AVX3 | HWY_AVX3_DL;

constexpr dnnl::cpu_isa kNoLimit{};  // `all` in oneDNN 2, `isa_default` in 3

dnnl::cpu_isa dnnl_isa(Isa isa) {
  switch (isa) {
    case Isa::sse4:
      return dnnl::cpu_isa::sse41;
    case Isa::avx2:
      return dnnl::cpu_isa::avx2;
    case Isa::avx512:
      break;
  }
  return kNoLimit;
}

Isa detect() {
  // A build may leave instruction sets out (LOCKSTEP_SANITIZE_VECTORS): layouts follow the kernels that were compiled.
  const int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
  // Calling this makes Highway 1.0 dispatch to the machine's best target, disabled or not, until Update.
  hwy::GetChosenTarget().Update(targets);
  if ((targets & kAvx512Targets) != 0) return Isa::avx512;
  if ((targets & HWY_AVX2) != 0) return Isa::avx2;
  if ((targets & HWY_SSE4) != 0) return Isa::sse4;
  throw Error("this CPU lacks SSE4.2 with AES and PCLMUL, which the CPU kernels need");
}

/// Highway's choice, which is global to the process; this is a copy as our type.
std::atomic<Isa>& chosen() {
  static std::atomic<Isa> isa{detect()};
  return isa;
}

}  // namespace

Isa active_isa() { return chosen().load(std::memory_order_relaxed); }

bool has_avx512_bf16() { return active_isa() == Isa::avx512 && __builtin_cpu_supports("avx512bf16") != 0; }

bool has_amx_bf16() {
  if (!has_avx512_bf16()) return false;
  constexpr auto kAmx = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_amx);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & kAmx) == kAmx;
}

void limit_isa(Isa isa) {
  int64_t disabled = 0;
  if (isa < Isa::avx512) disabled |= kAvx512Targets;
  if (isa < Isa::avx2) disabled |= HWY_AVX2;
  hwy::DisableTargets(disabled);
  chosen().store(detect(), std::memory_order_relaxed);
  // oneDNN accepts a limit only once and before its first use; setting the same limit again is fine.
  const dnnl::cpu_isa wanted = dnnl_isa(isa);
  if (dnnl::set_max_cpu_isa(wanted) == dnnl::status::success || wanted == kNoLimit) return;
  if (dnnl::get_effective_cpu_isa() > wanted) {
    throw UsageError("the instruction set cannot be limited to " + std::string(name(isa)) +
                     ": oneDNN has already chosen a wider one");
  }
}

Isa parse_isa(std::string_view text) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == text) return static_cast<Isa>(i);
  }
  const std::array<std::string, 3> allowed{std::string(kNames[0]), std::string(kNames[1]), std::string(kNames[2])};
  throw UsageError("unknown instruction set '" + std::string(text) + "'" + base::hint(text, allowed));
}

std::string_view name(Isa isa) { return kNames[static_cast<size_t>(isa)]; }

void limit_isa_from_environment() {
  static std::once_flag once;
  std::call_once(once, [] {
    const char* text = std::getenv("LOCKSTEP_MAX_ISA");  // NOLINT(concurrency-mt-unsafe): no thread sets it
    if (text == nullptr || *text == '\0') return;
    try {
      limit_isa(parse_isa(text));
    } catch (const UsageError& error) {
      throw UsageError(std::string("LOCKSTEP_MAX_ISA: ") + error.what());
    }
  });
}

}  // namespace lockstep::backend::cpu
