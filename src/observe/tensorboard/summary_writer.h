// TensorBoard's event file of one role. A SummaryWriter makes a new file in the folder, never touches an older one, and
// adds whole records to it, so that what is there can be read at any moment, also after a kill. It never throws: when
// the folder cannot be written or the disk is full it says so once (`warn`, on the calling thread, which must not call
// the writer from there) and from then on does nothing. Any thread may call it.
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

  SummaryWriter(const std::string& folder, Warn warn);
  /// Writes what is left.
  ~SummaryWriter();
  SummaryWriter(const SummaryWriter&) = delete;
  SummaryWriter& operator=(const SummaryWriter&) = delete;

  /// Training goes on after `step` steps: what TensorBoard knows of later ones does not count. Comes before the first
  /// scalar, and whenever training goes back.
  void go_on_from(uint64_t step);
  void scalar(std::string_view tag, uint64_t step, double value);
  /// Takes a few nanoseconds for each value that is looked at, 64k at most. Nothing is written where none is a number.
  void histogram(std::string_view tag, uint64_t step, std::span<const float> values);
  /// A PNG file's bytes.
  void image(std::string_view tag, uint64_t step, std::span<const uint8_t> png, int height, int width, int channels);
  void graph(const Graph& graph, const Devices& devices);
  void text(std::string_view tag, uint64_t step, std::string_view markdown);
  /// TensorBoard takes the columns of all runs from one of them: runs to be compared should name the same values.
  void hparams(const HParams& hparams);
  /// How it ended, for the HParams tab, which goes by the first end that it sees of a run: not to be called where the
  /// run may go on.
  void ended(bool well);
  /// A checkpoint was written (SessionLog).
  void checkpoint(uint64_t step, std::string_view path);

  /// Brings what there is to the file; happens by itself when a few kB have gathered or two seconds have passed.
  void flush();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::observe
