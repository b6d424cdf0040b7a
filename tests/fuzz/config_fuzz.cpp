// The reader of YAML settings must answer any bytes with settings or a UsageError. Accepted settings must survive being
// written and read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "lockstep/error.h"
#include "settings/configuration.h"

namespace {

lockstep::settings::Settings resolve(const std::string& text) {
  lockstep::settings::Configuration configuration;
  configuration.parse_yaml(text, "fuzz");
  if (!configuration.given("model")) configuration.set("model", "lenet");
  return configuration.resolve();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string yaml;
  try {
    yaml = to_yaml(resolve(std::string(reinterpret_cast<const char*>(data), size)));
  } catch (const lockstep::UsageError&) {
    return 0;
  } catch (const lockstep::IoError&) {  // the file of a model is missing
    return 0;
  }
  if (to_yaml(resolve(yaml)) != yaml) std::abort();
  return 0;
}
