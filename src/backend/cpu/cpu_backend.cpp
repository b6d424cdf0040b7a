#include "backend/cpu/cpu_backend.h"

#include <omp.h>

#include "backend/cpu/isa.h"
#include "backend/cpu/kernel_list.h"
#include "backend/cpu/layout_rules.h"
#include "lockstep/error.h"

namespace lockstep::backend {
namespace {

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(const CpuOptions& options) : options_(options) {
    cpu::limit_isa_from_environment();
    omp_set_num_threads(options.threads);  // what oneDNN's own loops use
  }

  [[nodiscard]] std::string_view name() const override { return "cpu"; }

  [[nodiscard]] NamedKernel make(const KernelRequest& request) const override {
    const auto all = cpu::implementations(request.node.op);
    for (const cpu::Implementation& implementation : options_.reference_only ? all.last(1) : all) {
      auto kernel = implementation.make(request, options_);
      if (kernel == nullptr) continue;
      std::string name(implementation.name);
      if (const std::string detail = kernel->detail(); !detail.empty()) name += " " + detail;
      return {std::move(name), std::move(kernel)};
    }
    throw Error("no CPU kernel takes node '" + request.node.name + "' of shape " + request.out_shape().str() +
                " in layout " + request.output().layout.str());
  }

  [[nodiscard]] std::optional<LayoutChoice> layouts(const KernelRequest& request) const override {
    return options_.reference_only ? std::nullopt : cpu::choose_layouts(request);
  }

 private:
  CpuOptions options_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options) { return std::make_unique<CpuBackend>(options); }

}  // namespace lockstep::backend
