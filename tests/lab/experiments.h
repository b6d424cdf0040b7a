// Experiment files for the tests of the lab, as text.
#pragma once

#include <string>

#include "base/temp_dir.h"
#include "lab/experiment.h"
#include "lockstep/error.h"

namespace lockstep::testing {

inline lab::Experiment parse(const std::string& text, const std::string& scale = "") {
  return lab::parse_experiment(text, "test.yaml", scale);
}

/// Returns the message that refuses the file.
inline std::string refusal(const std::string& text, const std::string& scale = "") {
  return message_of<UsageError>([&] { (void)parse(text, scale); });
}

inline std::vector<std::string> keys_of(const lab::Experiment& experiment) {
  std::vector<std::string> keys;
  for (const lab::Group& group : experiment.groups) {
    for (const lab::RunPlan& plan : group.runs) keys.push_back(plan.key);
  }
  return keys;
}

inline const std::string kBase = "name: e\nbase: {model: lr, dataset: synthetic, epochs: 1}\n";

}  // namespace lockstep::testing
