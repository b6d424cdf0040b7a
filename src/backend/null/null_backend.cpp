#include "backend/null/null_backend.h"

namespace lockstep::backend {
namespace {

class NullKernel final : public Kernel {
 public:
  void run(const StepContext&) override {}
};

class NullBackend final : public Backend {
 public:
  [[nodiscard]] std::string_view name() const override { return "null"; }
  [[nodiscard]] NamedKernel make(const KernelRequest&) const override {
    return {"null", std::make_unique<NullKernel>()};
  }
  [[nodiscard]] std::optional<LayoutChoice> layouts(const KernelRequest&) const override { return std::nullopt; }
};

}  // namespace

std::unique_ptr<Backend> make_null_backend() { return std::make_unique<NullBackend>(); }

}  // namespace lockstep::backend
