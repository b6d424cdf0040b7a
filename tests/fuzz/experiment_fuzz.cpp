// The reader of experiment files must answer any bytes with an experiment or a UsageError. The keys of its runs must be
// distinct and valid as folder names.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>

#include "lab/experiment.h"
#include "lockstep/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep::lab;
  try {
    const Experiment made = parse_experiment(std::string(reinterpret_cast<const char*>(data), size), "fuzz.yaml", "");
    std::set<std::string> keys;
    for (const Group& group : made.groups) {
      for (const RunPlan& run : group.runs) {
        if (!keys.insert(run.key).second || run.key.find('/') != std::string::npos || run.key[0] == '.') std::abort();
      }
    }
    if (keys.empty() || keys.size() != made.runs()) std::abort();
  } catch (const lockstep::UsageError&) {
    return 0;
  }
  return 0;
}
