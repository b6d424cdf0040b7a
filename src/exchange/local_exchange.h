// The exchange of a single process: finish() applies the optimizer to the gradients where they lie. Borrows the
// parameter store, which must outlive it. Allocates nothing per step. Used by one thread.
#pragma once

#include <memory>

#include "exchange/exchange.h"
#include "optim/schedule.h"
#include "program/parameters.h"

namespace lockstep::exchange {

struct LocalOptions {
  optim::OptimizerSettings optimizer = {};
  optim::Schedule schedule = {};
  float clip_norm = 0;  ///< largest global norm of the gradients, scaled down if above it; 0: no limit
  int threads = 1;
};

class LocalExchange final : public Exchange {
 public:
  LocalExchange(program::ParameterStore& parameters, const LocalOptions& options);

  void divide_updates(const std::vector<base::Shares>& by_thread) override { optimizer_->divide(by_thread); }
  void begin(const StepStart& start) override;
  void ready(program::ParameterRange range, Event event) override;
  /// Throws Error if some gradients were not announced.
  base::Result<StepInfo> finish(const BatchReport& report) override;
  [[nodiscard]] std::vector<std::string> slot_names() const override;
  /// Returns the live parameters and state.
  base::Result<Snapshot> snapshot() override;
  std::vector<optim::StateSlot> state() override;

 private:
  /// Returns the factor that brings the gradients' norm down to the limit, and writes the norm.
  float clip(float& norm) const;

  program::ParameterStore& parameters_;
  LocalOptions options_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  uint64_t step_ = 0;
  size_t announced_ = 0;
};

}  // namespace lockstep::exchange
