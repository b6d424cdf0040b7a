// The idx reader must answer any bytes with an array or a DataError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "data/idx.h"
#include "lockstep/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto array = lockstep::data::parse_idx(std::span(data, size), "fuzz");
    uint64_t product = 1;
    for (const uint32_t dim : array.dims) product *= dim;
    if (product != array.data.size()) std::abort();
  } catch (const lockstep::DataError&) {
  }
  return 0;
}
