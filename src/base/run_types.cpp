#include "lockstep/run_types.h"

namespace lockstep::train {

std::string text(StopReason reason) {
  static constexpr std::array<const char*, 10> kTexts{
      "none",     "epochs",       "steps",       "seconds",         "loss",
      "accuracy", "data ran out", "interrupted", "non-finite loss", "error"};
  return kTexts[static_cast<size_t>(reason)];
}

std::string_view text(Phase phase) {
  constexpr std::array<std::string_view, kPhases> kTexts = {"data wait",  "forward",    "backward", "optimizer",
                                                            "push",       "pull",       "transfer", "wait for others",
                                                            "evaluation", "checkpoint", "rest"};
  return kTexts[static_cast<size_t>(phase)];
}

std::string_view name(Phase phase) {
  constexpr std::array<std::string_view, kPhases> kNames = {"data",       "forward",    "backward", "optimizer",
                                                            "push",       "pull",       "transfer", "others",
                                                            "evaluation", "checkpoint", "rest"};
  return kNames[static_cast<size_t>(phase)];
}

}  // namespace lockstep::train
