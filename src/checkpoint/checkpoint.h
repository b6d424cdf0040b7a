// Checkpoints: the file format, reading and writing. docs/formats.md describes it for users.
//
//    offset  bytes
//    0       8     magic "LSTEPCKP"
//    8       4     format version, now 1
//    12      4     H: bytes of the header
//    16      8     P: bytes of the payload
//    24      H     header: JSON (UTF-8), see CheckpointHeader
//    24+H    P     payload: the arrays that the header lists, float32, one after the other without gaps
//    24+H+P  4     CRC-32 (zlib's) of everything before
//
// All numbers are little-endian. A file appears whole or not at all (base::WholeFile). Reading trusts nothing: it
// checks every field against its bounds and the file's size, and the checksum before it uses the header. Errors are a
// DataError of one line that names the file, the value seen and the value expected. A newer format version is refused
// by number. Free functions and plain values; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/training_state.h"
#include "lockstep/graph.h"
#include "settings/settings.h"

namespace lockstep::checkpoint {

constexpr std::string_view kCheckpointMagic = "LSTEPCKP";
constexpr uint32_t kCheckpointVersion = 1;

struct ParameterEntry {
  std::string name;
  Shape shape;
  friend bool operator==(const ParameterEntry&, const ParameterEntry&) = default;
};

struct CheckpointHeader {
  std::string model;
  settings::Options options;
  Shape image;  ///< [channels, height, width]
  int64_t classes = 0;
  int64_t train_examples = 0;              ///< training examples per pass
  std::vector<std::string> class_names;    ///< may be empty
  std::vector<ParameterEntry> parameters;  ///< parameters in the order of the parameter buffer
  std::string optimizer;
  std::vector<std::string> slots;  ///< names of the optimizer's state arrays, in the order of the payload
  settings::Options settings;      ///< all settings of the run, as text
  TrainingState state;
  std::string version;  ///< version of the program that wrote it

  /// Number of elements of all parameters together.
  [[nodiscard]] size_t parameter_count() const;
};

/// A checkpoint in memory: the header and, in `values`, the parameters followed by each slot.
struct Checkpoint {
  CheckpointHeader header;
  std::vector<float> values;

  [[nodiscard]] std::span<const float> parameters() const;
  [[nodiscard]] std::span<const float> slot(size_t i) const;
};

std::vector<ParameterEntry> parameter_entries(const std::vector<graph::ParameterInfo>& infos);

/// Writes a whole file and makes it durable; returns its size. `arrays` are the parameters, then each slot. Throws
/// IoError. `may_keep` is asked before the file gets its name; if it says no, there is no file, and the size is 0.
size_t write_checkpoint(const std::string& path, const CheckpointHeader& header,
                        std::span<const std::span<const float>> arrays, const std::function<bool()>& may_keep = {});

/// Throws IoError if the file cannot be read and DataError if it is not a whole, intact checkpoint.
Checkpoint read_checkpoint(const std::string& path);
/// Reads a checkpoint from memory; `name` stands for the file in errors.
Checkpoint parse_checkpoint(std::span<const uint8_t> file, const std::string& name);

/// Converts the header to JSON text.
std::string header_to_json(const CheckpointHeader& header);
CheckpointHeader header_from_json(std::string_view json, const std::string& file);

}  // namespace lockstep::checkpoint
