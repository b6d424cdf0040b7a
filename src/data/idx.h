// idx files, the format of MNIST and Fashion-MNIST: plain or gzip, told apart by their content.
//
// Every value of a header is checked before use. Memory grows only as data arrives, and gzip data is unpacked straight
// into its final place. An invalid file causes a DataError of one line that names the file, the value seen and what
// is allowed. An unreadable file causes an IoError. Free functions, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace lockstep::data {

/// An array of unsigned bytes, the only element type accepted.
struct IdxArray {
  std::vector<uint32_t> dims;
  std::vector<uint8_t> data;
};

IdxArray read_idx(const std::string& path);

/// Parses the bytes in memory; `name` stands for the file in errors.
IdxArray parse_idx(std::span<const uint8_t> file, const std::string& name);

/// Reads images (three dimensions: count, height, width) without labels.
Examples read_idx_images(const std::string& path);

/// Reads images and their labels (one dimension); checks them against each other and against 0..classes-1.
Examples read_idx_pair(const std::string& images_path, const std::string& labels_path, int classes);

}  // namespace lockstep::data
