// The reader of TF_CONFIG must answer any bytes with a valid cluster, nothing, or a UsageError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "cluster/tf_config.h"
#include "lockstep/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep::cluster;
  try {
    const auto config = parse_tf_config(std::string(reinterpret_cast<const char*>(data), size));
    if (!config) return 0;
    if (find_problem(config->spec)) std::abort();
    if (config->task && !config->spec.contains(*config->task)) std::abort();
  } catch (const lockstep::UsageError&) {
    return 0;
  }
  return 0;
}
