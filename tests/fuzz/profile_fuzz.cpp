// The reader of profiles must answer any bytes with a profile that a plan can start from, or a typed error.
#include <cstddef>
#include <cstdint>
#include <string>

#include "lockstep/error.h"
#include "plan/basis.h"
#include "plan/profile.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const lockstep::plan::Profile profile =
        lockstep::plan::parse_profile({reinterpret_cast<const char*>(data), size}, "fuzz.json");
    for (const lockstep::plan::ModelProfile& model : profile.models) {
      static_cast<void>(lockstep::plan::basis_of(profile, model, 2));
    }
    if (lockstep::plan::parse_profile(to_json(profile), "again.json").models.size() != profile.models.size()) {
      __builtin_trap();
    }
  } catch (const lockstep::DataError&) {
  }
  return 0;
}
