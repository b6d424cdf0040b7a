// TensorBoard's event file of one role. A SummaryWriter makes a new file in the folder, never changes an older one, and
// appends whole records, so that the file can be read at any moment, even after a kill. It never throws: if the folder
// cannot be written or the disk is full it reports this once (`warn`, on the calling thread, which must not call the
// writer from there) and writes nothing more. Any thread may call it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lockstep/graph.h"

namespace lockstep::observe {

using graph::Graph;

/// A setting or a result in the HParams tab.
using HParam = std::variant<bool, double, std::string>;

/// The values by which the HParams tab compares runs.
struct HParams {
  std::map<std::string, HParam> values;
  std::vector<std::string> metrics;  ///< tags of scalars in this folder: "eval/accuracy"
  std::string group;                 ///< the run's name
};

/// The devices of each parameter and of the other nodes: "/job:ps/task:0", "/job:worker/task:1/device:CPU:0".
struct Devices {
  std::string compute;
  std::function<std::string(size_t parameter)> parameter = {};  ///< absent: the same device as the other nodes
};

class SummaryWriter {
 public:
  using Warn = std::function<void(const std::string& text)>;

  SummaryWriter(const std::string& folder, Warn warn);
  /// Writes the remaining records.
  ~SummaryWriter();
  SummaryWriter(const SummaryWriter&) = delete;
  SummaryWriter& operator=(const SummaryWriter&) = delete;

  /// Continues after `step` steps: TensorBoard drops later ones. Call it before the first scalar, and whenever training
  /// goes back.
  void go_on_from(uint64_t step);
  void scalar(std::string_view tag, uint64_t step, double value);
  /// Takes a few nanoseconds per value, for at most 64k values. Writes nothing if all values are NaN.
  void histogram(std::string_view tag, uint64_t step, std::span<const float> values);
  /// Writes a picture from a PNG file's bytes.
  void image(std::string_view tag, uint64_t step, std::span<const uint8_t> png, int height, int width, int channels);
  void graph(const Graph& graph, const Devices& devices);
  void text(std::string_view tag, uint64_t step, std::string_view markdown);
  /// TensorBoard takes the columns for all runs from one of them, so runs to be compared should name the same values.
  void hparams(const HParams& hparams);
  /// Writes the end of the run for the HParams tab, which uses the first end of a run that it sees: do not call it if
  /// the run may be resumed.
  void ended(bool well);
  /// Reports a written checkpoint (SessionLog).
  void checkpoint(uint64_t step, std::string_view path);

  /// Writes waiting records to the file; also happens by itself after a few kB or two seconds.
  void flush();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::observe
