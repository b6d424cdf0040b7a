// numpy files: .npz archives (zip, stored or deflated) and single .npy arrays (format 1 and 2).
//
// Accepted: u1, i4, i8, f4, f8, little endian, C order. Sizes are checked against the bytes that are there before
// anything is allocated, checksums always; zip64 is refused. Errors are a DataError (content) or an IoError (system) of
// one line. An Npz owns the file's bytes; any thread may read from a const one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/zip.h"

namespace lockstep::data {

enum class NpyType { kU1, kI4, kI8, kF4, kF8 };

struct NpyArray {
  NpyType type = NpyType::kU1;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;  ///< C order, little endian

  [[nodiscard]] int64_t size() const;  ///< elements
  [[nodiscard]] double at(int64_t index) const;
};

/// A single array, as in a .npy file; `name` stands for the file in errors.
NpyArray parse_npy(std::span<const uint8_t> file, const std::string& name);

class Npz {
 public:
  static Npz open(const std::string& path);
  static Npz parse(std::vector<uint8_t> file, std::string name);

  /// The arrays, in the order of the archive, without ".npy".
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] bool has(const std::string& array) const;

  /// DataError with the names there are when there is no such array.
  [[nodiscard]] NpyArray read(const std::string& array) const;

 private:
  std::string name_;
  std::vector<uint8_t> file_;
  std::vector<ZipEntry> entries_;
  std::vector<std::string> names_;
};

/// Images from an array of shape (n,c,h,w), (n,h,w), (h,w) or, when `expected` has a size, (n,c*h*w). Bytes and
/// integers of 0..255 become bytes, floats stay. `source` is named in errors.
Examples images_from_array(const NpyArray& array, const ImageShape& expected, const std::string& source);

/// Labels from an integer array of shape (n) or (n,1).
std::vector<int32_t> labels_from_array(const NpyArray& array, const std::string& source);

}  // namespace lockstep::data
