// The header of a .npy array: a Python dict of three known keys, every one of them checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/npz.h"

namespace lockstep::data {

struct NpyHeader {
  NpyType type = NpyType::kU1;
  bool big_endian = false;
  std::vector<int64_t> shape;
  size_t size = 0;  ///< bytes before the data
};

size_t item_size(NpyType type);

/// Throws DataError that names `name` if the header is damaged or describes an array that is not accepted.
NpyHeader read_npy_header(std::span<const uint8_t> file, const std::string& name);

}  // namespace lockstep::data
