// The exchange of one process: nobody to meet, so finish() applies the optimizer to the gradients where they lie.
// Borrows the parameter store, which must outlive it; allocates nothing per step; used by one thread.
#pragma once

#include <memory>

#include "exchange/exchange.h"
#include "optim/schedule.h"
#include "program/parameters.h"

namespace lockstep::exchange {

struct LocalOptions {
  optim::OptimizerSettings optimizer = {};
  optim::Schedule schedule = {};
  float clip_norm = 0;  ///< gradients with a larger global norm are scaled down to it; 0: never
  int threads = 1;
};

class LocalExchange final : public Exchange {
 public:
  LocalExchange(program::ParameterStore& parameters, const LocalOptions& options);

  void begin(const StepStart& start) override;
  void ready(program::ParameterRange range, Event event) override;
  /// Throws Error if some gradients were never announced.
  base::Result<StepInfo> finish(const BatchReport& report) override;
  [[nodiscard]] std::vector<std::string> slot_names() const override;
  /// The live parameters and state.
  base::Result<Snapshot> snapshot() override;
  std::vector<optim::StateSlot> state() override;

 private:
  /// The factor that brings the gradients' norm down to the limit; tells the norm.
  float clip(float& norm) const;

  program::ParameterStore& parameters_;
  LocalOptions options_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  uint64_t step_ = 0;
  size_t announced_ = 0;
};

}  // namespace lockstep::exchange
