// The reader of CSV as own data must answer any bytes with a data set or a typed error. The first byte chooses the
// label column.
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "data/own_data.h"
#include "lockstep/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  constexpr std::array<const char*, 5> kColumns{"", "1", "3", "none", "kind"};
  lockstep::data::OwnDataOptions options{.expected = {1, 2, 2}};
  options.label_column = kColumns[data[0] % kColumns.size()];
  try {
    const auto dataset = lockstep::data::parse_own_data(std::span(data + 1, size - 1), "fuzz.csv", options);
    check_labels(dataset.train, "fuzz");
  } catch (const lockstep::DataError&) {
  } catch (const lockstep::UsageError&) {
  }
  return 0;
}
