// The actions of `lockstep lab`, one function per command; each returns the exit code.
#pragma once

#include <cstdint>
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
  int64_t retries = -1;          ///< further tries of a disturbed run; -1: as the file says
  bool local = false;
  bool dry_run = false;
  bool again = false;
  bool json = false;
};
/// Arguments of the commands that show results; each command uses some of them.
struct LabLookArguments {
  std::string name;
  std::string scale;
  std::string lab_dir = "lab";
  std::string output;
  std::string to = "csv";
  int64_t width = 0;  ///< of plots, in millimetres; 0: not given
  std::string font;   ///< of plots; empty: not given
  bool measure = false;
  bool tables = false;
  bool no_titles = false;
  bool workers = false;
  bool long_form = false;
  bool json = false;
};

int lab_run(const LabRunArguments& arguments, const Invocation& invocation);
int lab_list(const LabLookArguments& arguments);
int lab_show(const LabLookArguments& arguments);
int lab_report(const LabLookArguments& arguments);
int lab_export(const LabLookArguments& arguments);
/// Exports the tables or the plots of the report: of formats and flags that ask for them.
int export_report_parts(const lab::Results& results, const LabLookArguments& arguments);
bool wants_report_parts(const LabLookArguments& arguments);

/// Prints the verdicts on the experiment's findings; nothing if it states none.
void print_findings(const lab::Results& results);

/// Returns the runs whose keys match one of the patterns; all without patterns. Throws UsageError for a pattern without
/// runs.
std::vector<const lab::RunPlan*> chosen_runs(const lab::Experiment& experiment, const std::vector<std::string>& only);
/// Returns "3 workers, 1 server, async; emulated: cores=0.5".
std::string cluster_text(const lab::RunPlan& plan);
/// Returns "20 epochs", "until loss 0.35".
std::string length_text(const lab::RunPlan& plan);

}  // namespace lockstep::tools
