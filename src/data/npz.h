// numpy files: .npz archives (zip, stored or deflated) and single .npy arrays (format 1 and 2).
//
// Accepted: booleans, integers of 1 to 8 bytes, f4 and f8, in C order. Big-endian elements are turned. Sizes are
// checked against the bytes present before anything is allocated; checksums are always checked; zip64 is refused.
// Errors are a one-line DataError (content) or IoError (system). An Npz owns the file's bytes; any thread may read from
// a const one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/zip.h"

namespace lockstep::data {

enum class NpyType { kBool, kU1, kI1, kU2, kI2, kU4, kI4, kU8, kI8, kF4, kF8 };

struct NpyArray {
  NpyType type = NpyType::kU1;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;  ///< C order, little endian

  [[nodiscard]] int64_t size() const;  ///< elements
  [[nodiscard]] double at(int64_t index) const;
};

/// Parses a single array, as in a .npy file; `name` stands for the file in errors.
NpyArray parse_npy(std::span<const uint8_t> file, const std::string& name);

class Npz {
 public:
  static Npz open(const std::string& path);
  static Npz parse(std::vector<uint8_t> file, std::string name);

  /// Returns the arrays' names, in the order of the archive, without ".npy".
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] bool has(const std::string& array) const;

  /// Returns the array. Throws DataError with the names present if there is none of that name.
  [[nodiscard]] NpyArray read(const std::string& array) const;

 private:
  std::string name_;
  std::vector<uint8_t> file_;
  std::vector<ZipEntry> entries_;
  std::vector<std::string> names_;
};

/// Returns images from an array of shape (n,c,h,w), (n,h,w), (h,w) or, if `expected` has a size, (n,c*h*w). Integers
/// 0..255 become bytes, and booleans the bytes 0 and 255; floats stay. Errors name `source`.
Examples images_from_array(const NpyArray& array, const ImageShape& expected, const std::string& source);

/// Returns labels from an array of integers or booleans of shape (n) or (n,1).
std::vector<int32_t> labels_from_array(const NpyArray& array, const std::string& source);

}  // namespace lockstep::data
