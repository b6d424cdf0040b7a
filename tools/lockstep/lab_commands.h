// What `lockstep lab` does, one function per command; each gives the exit code.
#pragma once

#include <string>
#include <vector>

#include "command.h"
#include "lab/experiment.h"
#include "output.h"

namespace lockstep::tools {

struct LabRunArguments {
  std::string file;
  std::string scale;
  std::vector<std::string> only;
  std::string lab_dir = "lab";
  std::string data;
  bool dry_run = false;
  bool again = false;
  bool json = false;
};
int lab_run(const LabRunArguments& arguments, const Invocation& invocation);

/// The runs whose keys match one of the patterns, or all without any. Throws UsageError for a pattern without runs.
std::vector<const lab::RunPlan*> chosen_runs(const lab::Experiment& experiment, const std::vector<std::string>& only);
/// "3 workers, 1 server, async; emulated: cores=0.5".
std::string cluster_text(const lab::RunPlan& plan);
/// "20 epochs", "until loss 0.35".
std::string length_text(const lab::RunPlan& plan);

}  // namespace lockstep::tools
