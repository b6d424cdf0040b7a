// Reads scalars from TensorBoard's event files, as written by Lockstep, TensorFlow, Keras or PyTorch: simple values,
// and tensors with one number. Strict: checksums are checked, and a file, a record and the number of scalars have
// limits. Free functions; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::observe {

struct Scalar {
  double time = 0;  ///< seconds since 1970
  int64_t step = 0;
  double value = 0;
};

struct Scalars {
  std::vector<Scalar> scalars;    ///< in the order of the file
  std::vector<std::string> tags;  ///< all tags with scalars, sorted; at most kMostTags
};

inline constexpr uint64_t kLargestEventFile = uint64_t{1} << 30;
inline constexpr uint64_t kLargestEvent = uint64_t{64} << 20;
inline constexpr size_t kMostScalars = 10'000'000;
inline constexpr size_t kMostTags = 1000;

/// Reads the scalars of a tag. A last record that is cut off, as in a file that is still written, is left out. Throws
/// DataError "FILE: record N at byte B: ..." for damage.
Scalars read_scalars(std::span<const uint8_t> bytes, std::string_view tag, const std::string& file);

/// Reads the scalars of a tag from all event files of a folder and those below it, sorted by time. Throws DataError if
/// there is no event file or no scalar of that tag, naming the tags that are there; IoError.
Scalars read_scalars_of(const std::string& folder, std::string_view tag);

}  // namespace lockstep::observe
