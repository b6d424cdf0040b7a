// The npz, npy, PNG and JPEG readers, and own data as npz, must answer any bytes with a value or a typed error. The
// first byte chooses.
#include <cstddef>
#include <cstdint>
#include <span>

#include "data/images.h"
#include "data/npz.h"
#include "data/own_data.h"
#include "lockstep/error.h"

namespace {

using lockstep::data::ImageShape;

void use(const lockstep::data::NpyArray& array) {
  if (array.size() > 0) (void)array.at(array.size() - 1);
  try {
    (void)labels_from_array(array, "fuzz");
  } catch (const lockstep::DataError&) {
  }
  (void)images_from_array(array, ImageShape{1, 2, 2}, "fuzz");
}

void use(lockstep::data::Examples picture) { lockstep::data::resize(picture, 3, 2, lockstep::data::Fit::crop); }

void read(std::span<const uint8_t> file, int format) {
  if (format == 0) {
    use(lockstep::data::parse_npy(file, "fuzz"));
  } else if (format == 1) {
    use(lockstep::data::parse_png(file, "fuzz"));
  } else if (format == 4) {
    use(lockstep::data::parse_jpeg(file, "fuzz"));
  } else if (format == 3) {
    (void)lockstep::data::parse_own_data(file, "fuzz.npz", {.expected = ImageShape{1, 2, 2}});
  } else {
    const auto npz = lockstep::data::Npz::parse({file.begin(), file.end()}, "fuzz");
    for (const auto& name : npz.names()) use(npz.read(name));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  try {
    read(std::span(data + 1, size - 1), data[0] % 5);
  } catch (const lockstep::DataError&) {
  } catch (const lockstep::UsageError&) {  // too few examples to split
  }
  return 0;
}
