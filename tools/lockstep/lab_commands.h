// What `lockstep lab` does, one function per command; each gives the exit code.
#pragma once

#include <string>
#include <vector>

#include "command.h"
#include "lab/experiment.h"
#include "lab/results.h"
#include "terminal/output.h"

namespace lockstep::tools {

struct LabRunArguments {
  std::string file;
  std::string scale;
  std::vector<std::string> only;
  std::string lab_dir = "lab";
  std::string data;
  std::vector<std::string> set;  ///< "dataset=fashion-mnist"
  bool local = false;
  bool dry_run = false;
  bool again = false;
  bool json = false;
};
/// Of the commands that look at what is there; each uses some.
struct LabLookArguments {
  std::string name;
  std::string scale;
  std::string lab_dir = "lab";
  std::string output;
  std::string to = "csv";
  bool workers = false;
  bool long_form = false;
  bool json = false;
};

int lab_run(const LabRunArguments& arguments, const Invocation& invocation);
int lab_list(const LabLookArguments& arguments);
int lab_show(const LabLookArguments& arguments);
int lab_report(const LabLookArguments& arguments);
int lab_export(const LabLookArguments& arguments);

/// What became of the findings that the experiment states; nothing where there are none.
void print_findings(const lab::Results& results);

/// The runs whose keys match one of the patterns, or all without any. Throws UsageError for a pattern without runs.
std::vector<const lab::RunPlan*> chosen_runs(const lab::Experiment& experiment, const std::vector<std::string>& only);
/// "3 workers, 1 server, async; emulated: cores=0.5".
std::string cluster_text(const lab::RunPlan& plan);
/// "20 epochs", "until loss 0.35".
std::string length_text(const lab::RunPlan& plan);

}  // namespace lockstep::tools
