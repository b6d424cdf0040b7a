// Makes small files in the formats that src/data reads, for its tests.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::testing {

using Bytes = std::vector<uint8_t>;

inline void append(Bytes& to, const Bytes& more) { to.insert(to.end(), more.begin(), more.end()); }
inline void append(Bytes& to, std::string_view text) { to.insert(to.end(), text.begin(), text.end()); }

inline Bytes big_endian(uint32_t value) {
  return {static_cast<uint8_t>(value >> 24), static_cast<uint8_t>(value >> 16), static_cast<uint8_t>(value >> 8),
          static_cast<uint8_t>(value)};
}

inline void little(Bytes& to, uint64_t value, int size) {
  for (int i = 0; i < size; ++i) to.push_back(static_cast<uint8_t>(value >> (8 * i)));
}

/// Returns an idx file with the given data, even if the dimensions disagree.
inline Bytes make_idx(const std::vector<uint32_t>& dims, const Bytes& data, uint8_t type = 8) {
  Bytes file{0, 0, type, static_cast<uint8_t>(dims.size())};
  for (const uint32_t dim : dims) append(file, big_endian(dim));
  append(file, data);
  return file;
}

/// Returns `count` bytes, each unlike its neighbours.
inline Bytes ramp(size_t count, uint32_t modulus = 251) {
  Bytes data(count);
  for (size_t i = 0; i < count; ++i) data[i] = static_cast<uint8_t>(i % modulus);
  return data;
}

/// Returns zlib's deflate with the given window bits: 31 for gzip, -15 for raw.
inline Bytes deflate_bytes(const Bytes& data, int window_bits) {
  z_stream stream{};
  deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY);
  Bytes packed(deflateBound(&stream, data.size()) + 32);
  stream.next_in = const_cast<Bytef*>(data.data());
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = packed.data();
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

inline Bytes gzip(const Bytes& data) { return deflate_bytes(data, 31); }

inline Bytes make_npy(const std::string& dict, const Bytes& data, int version = 1) {
  Bytes file{0x93, 'N', 'U', 'M', 'P', 'Y', static_cast<uint8_t>(version), 0};
  little(file, dict.size(), version == 1 ? 2 : 4);
  append(file, dict);
  append(file, data);
  return file;
}

inline std::string npy_dict(const std::string& descr, const std::string& shape, bool fortran = false) {
  return "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': " + shape +
         ", }    \n";
}

struct ZipPart {
  std::string name;
  Bytes content;
  int method = 0;
};

/// Returns a zip archive in the form of Python's zipfile.
inline Bytes make_zip(const std::vector<ZipPart>& parts) {
  Bytes file;
  Bytes directory;
  for (const ZipPart& part : parts) {
    const Bytes packed = part.method == 8 ? deflate_bytes(part.content, -15) : part.content;
    const uint64_t offset = file.size();
    Bytes fields;
    little(fields, 20, 2);
    little(fields, 0, 2);
    little(fields, static_cast<uint64_t>(part.method), 2);
    little(fields, 0, 4);
    little(fields, crc32_z(0, part.content.data(), part.content.size()), 4);
    little(fields, packed.size(), 4);
    little(fields, part.content.size(), 4);
    little(fields, part.name.size(), 2);
    little(fields, 0, 2);
    append(file, "PK\3\4");
    append(file, fields);
    append(file, part.name);
    append(file, packed);
    append(directory, "PK\1\2");
    little(directory, 20, 2);
    append(directory, fields);
    little(directory, 0, 2);
    little(directory, 0, 2);
    little(directory, 0, 2);
    little(directory, 0, 4);
    little(directory, offset, 4);
    append(directory, part.name);
  }
  const uint64_t begin = file.size();
  append(file, directory);
  append(file, "PK\5\6");
  little(file, 0, 4);
  little(file, parts.size(), 2);
  little(file, parts.size(), 2);
  little(file, directory.size(), 4);
  little(file, begin, 4);
  little(file, 0, 2);
  return file;
}

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

}  // namespace lockstep::testing
