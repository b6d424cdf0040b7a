// The memory of a ParameterShard's versions: equal buffers that never move, and the record of the current one. In
// memory only (here), or in a mapped file that survives the process (state_file.h). Made and read by one thread;
// `grow`, `sync` and `commit` by one at a time (VersionedBuffers has the lock).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tensor/buffer.h"

namespace lockstep::ps {

constexpr size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

/// The layout of one version in its buffer: the count of updates made in place, the parameters, each slot of the
/// optimizer.
class BufferLayout {
 public:
  BufferLayout(size_t parameters, size_t slots, size_t page);

  /// Number of lock-free updates of this buffer beyond its commit's version. Written by Lockstep 0.1 only.
  [[nodiscard]] std::atomic<uint64_t>& updates_in_place(std::byte* buffer) const;
  [[nodiscard]] std::span<float> parameters(std::byte* buffer) const { return part(buffer, 0); }
  [[nodiscard]] std::span<float> slot(std::byte* buffer, size_t i) const { return part(buffer, i + 1); }
  [[nodiscard]] size_t count() const { return parameters_; }
  [[nodiscard]] size_t slots() const { return slots_; }
  [[nodiscard]] size_t bytes() const { return bytes_; }  ///< whole pages

 private:
  [[nodiscard]] std::span<float> part(std::byte* buffer, size_t i) const;

  size_t parameters_;
  size_t slots_;
  size_t part_bytes_;
  size_t bytes_;
};

/// The record of the current version.
struct Commit {
  uint64_t version = 0;  ///< without updates made in place
  size_t buffer = 0;
  std::span<const std::byte> ledger;
};

/// A recovered commit, with its own memory.
struct Recovered {
  uint64_t version = 0;
  size_t buffer = 0;
  std::vector<std::byte> ledger;
};

class StateMemory {
 public:
  virtual ~StateMemory() = default;

  [[nodiscard]] virtual size_t buffers() const = 0;
  [[nodiscard]] virtual std::byte* buffer(size_t i) const = 0;
  /// Adds a buffer; returns false if there is no room for it.
  virtual bool grow() = 0;
  /// Makes a buffer's content as durable as this memory promises.
  virtual void sync(size_t buffer) = 0;
  /// Makes the commit current at once or not at all, whenever the process ends.
  virtual void commit(const Commit& commit) = 0;
  /// The newest commit found at the start.
  [[nodiscard]] virtual std::optional<Recovered> recovered() const = 0;
  /// Returns true if the last commit but one must also stay whole.
  [[nodiscard]] virtual bool keeps_previous() const = 0;
};

/// Memory that ends with the process.
class PlainMemory final : public StateMemory {
 public:
  PlainMemory(const BufferLayout& layout, size_t buffers);

  [[nodiscard]] size_t buffers() const override { return buffers_.size(); }
  [[nodiscard]] std::byte* buffer(size_t i) const override { return buffers_[i].data(); }
  bool grow() override;
  void sync(size_t /*buffer*/) override {}
  void commit(const Commit& /*commit*/) override {}
  [[nodiscard]] std::optional<Recovered> recovered() const override { return {}; }
  [[nodiscard]] bool keeps_previous() const override { return false; }

 private:
  size_t bytes_;
  std::vector<Buffer> buffers_;
};

}  // namespace lockstep::ps
