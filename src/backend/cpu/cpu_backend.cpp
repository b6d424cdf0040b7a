#include "backend/cpu/cpu_backend.h"

#include <omp.h>

#include <algorithm>

#include "backend/cpu/isa.h"
#include "backend/cpu/kernel_list.h"
#include "backend/cpu/layout_rules.h"
#include "backend/cpu/precision_rules.h"
#include "base/loops.h"
#include "lockstep/error.h"

namespace lockstep::backend {
namespace {

bool has_bf16(const KernelRequest& request) {
  const auto narrow = [](const graph::Output& output) { return output.type.dtype == DType::bf16; };
  const auto& node = request.node;
  return std::any_of(node.outputs.begin(), node.outputs.end(), narrow) ||
         std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](graph::ValueId id) { return narrow(request.graph.output(id)); });
}

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(const CpuOptions& options) : options_(options) {
    cpu::limit_isa_from_environment();
    if (options.bf16 && !cpu::has_avx512_bf16()) {
      const bool limited = cpu::active_isa() != cpu::Isa::avx512;
      throw UsageError("precision: bf16 needs AVX512_BF16, " +
                       (limited ? "and the instruction set in use is " + std::string(cpu::name(cpu::active_isa()))
                                : std::string("which this CPU lacks")) +
                       "; only f32 is allowed");
    }
    if (options.bf16 && !options.channels_last) options_.channels_last = cpu::has_amx_bf16();
    omp_set_num_threads(options.threads);  // thread count of oneDNN's own loops
    base::leave_openmp();                  // the model may have none of them
  }

  [[nodiscard]] std::string_view name() const override { return "cpu"; }

  [[nodiscard]] NamedKernel make(const KernelRequest& request) const override {
    const auto all = cpu::implementations(request.node.op);
    const bool bf16 = has_bf16(request);
    for (const cpu::Implementation& implementation : options_.reference_only ? all.last(1) : all) {
      if (bf16 && !implementation.bf16) continue;
      auto kernel = implementation.make(request, options_);
      if (kernel == nullptr) continue;
      std::string name(implementation.name);
      if (const std::string detail = kernel->detail(); !detail.empty()) name += " " + detail;
      return {std::move(name), std::move(kernel)};
    }
    throw Error("no CPU kernel for node '" + request.node.name + "' of shape " + request.out_shape().str() +
                (bf16 ? " in bf16" : "") + " in layout " + request.output().layout.str());
  }

  [[nodiscard]] std::optional<PrecisionChoice> precisions(const KernelRequest& request) const override {
    return options_.bf16 && !options_.reference_only ? cpu::choose_precisions(request) : std::nullopt;
  }

  [[nodiscard]] std::optional<LayoutChoice> layouts(const KernelRequest& request) const override {
    return options_.reference_only ? std::nullopt
                                   : cpu::choose_layouts(request, options_.channels_last.value_or(false));
  }

 private:
  CpuOptions options_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options) { return std::make_unique<CpuBackend>(options); }

}  // namespace lockstep::backend
