// The words of `lockstep plan` and `lockstep profile` as values. Each function throws UsageError that names the flag,
// the text seen and what is allowed.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace lockstep::tools {

struct PlanArguments {
  std::string subject;
  std::string nodes = "1,2,4,8";
  std::string rate;
  std::string delay;
  std::string strategy = "ps,allreduce";
  bool sync = false;
  bool async = false;
  std::string batch;
  std::string ps = "1";
  int64_t backups = 0;
  std::string node;
  std::string cost;
  std::string epochs;
  std::string until;
  std::string profile;
  std::string runs_dir = "runs";
  std::string out;
  std::string trace;
  std::string yaml;
  bool json = false;
};

plan::Choices choices_of(const PlanArguments& arguments);

/// Returns whole numbers of at least `least` from "1,2,4".
std::vector<int64_t> whole_numbers(const std::string& flag, const std::string& text, int64_t least, int64_t most);

}  // namespace lockstep::tools
