// TensorBoard's event file of one role. A SummaryWriter makes a new file in the folder, never touches an older one, and
// adds whole records to it, so that what is there can be read at any moment, also after a kill. It never throws: when
// the folder cannot be written or the disk is full it says so once (`warn`) and from then on does nothing. Any thread
// may call it.
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

/// A setting or a result, as the HParams tab shows it.
using HParam = std::variant<bool, double, std::string>;

/// What the HParams tab compares runs by.
struct HParams {
  std::map<std::string, HParam> values;
  std::vector<std::string> metrics;  ///< tags of scalars in this folder: "eval/accuracy"
  std::string group;                 ///< the run's name
};

/// Where each parameter lives and where the rest is computed: "/job:ps/task:0", "/job:worker/task:1/device:CPU:0".
struct Devices {
  std::string compute;
  std::function<std::string(size_t parameter)> parameter = {};  ///< absent: as the rest
};

class SummaryWriter {
 public:
  using Warn = std::function<void(const std::string& text)>;

  /// A step at which the training goes on: what TensorBoard knows from older files of later steps does not count.
  SummaryWriter(const std::string& folder, uint64_t first_step, Warn warn);
  /// Writes what is left.
  ~SummaryWriter();
  SummaryWriter(const SummaryWriter&) = delete;
  SummaryWriter& operator=(const SummaryWriter&) = delete;

  void scalar(std::string_view tag, uint64_t step, double value);
  void histogram(std::string_view tag, uint64_t step, std::span<const float> values);
  /// A PNG file's bytes.
  void image(std::string_view tag, uint64_t step, std::span<const uint8_t> png, int height, int width, int channels);
  void graph(const Graph& graph, const Devices& devices);
  void text(std::string_view tag, uint64_t step, std::string_view markdown);
  void hparams(const HParams& hparams);
  /// How it ended, for the HParams tab.
  void ended(bool well);
  /// A checkpoint was written (SessionLog).
  void checkpoint(uint64_t step, std::string_view path);

  /// Brings what there is to the file; happens by itself when a few kB have gathered.
  void flush();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::observe
