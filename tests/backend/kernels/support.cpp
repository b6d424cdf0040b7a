#include "support.h"

#include <iostream>

#include "backend/cpu/isa.h"

namespace lockstep::backend::cpu {
namespace {

class IsaEnvironment : public ::testing::Environment {
 public:
  void SetUp() override {
    limit_isa_from_environment();
    std::cout << "instruction set: " << name(active_isa()) << "\n";
  }
};

[[maybe_unused]] const auto* const kEnvironment = ::testing::AddGlobalTestEnvironment(new IsaEnvironment);

}  // namespace
}  // namespace lockstep::backend::cpu
