// The versions of a ParameterShard: which buffer is current, which are held, which may be written. A buffer is free if
// nobody holds it and it is not current. If none is free, another is made. If there is no room for one, the caller
// waits until a hold ends: nothing here does.
//
// Threads: `begin` and `commit` by one writer at a time, the rest from any thread. Holds keep the memory alive, even
// after the ParameterShard is destroyed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "ps/state_memory.h"

namespace lockstep::ps {

class VersionedBuffers : public std::enable_shared_from_this<VersionedBuffers> {
 public:
  using Ledger = std::shared_ptr<const std::vector<std::byte>>;

  /// A held version: its buffer is not written while this lives.
  class Hold {
   public:
    Hold(std::shared_ptr<VersionedBuffers> owner, size_t buffer, uint64_t version, Ledger ledger);
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    ~Hold();

    [[nodiscard]] uint64_t version() const { return version_; }
    [[nodiscard]] std::byte* memory() const { return memory_; }
    [[nodiscard]] std::span<const std::byte> ledger() const { return *ledger_; }

   private:
    std::shared_ptr<VersionedBuffers> owner_;
    size_t buffer_;
    std::byte* memory_;
    uint64_t version_;
    Ledger ledger_;
  };

  VersionedBuffers(std::unique_ptr<StateMemory> memory, const BufferLayout& layout);

  [[nodiscard]] bool initialised() const;
  /// Holds the current version. Only if initialised.
  [[nodiscard]] std::shared_ptr<const Hold> current();
  [[nodiscard]] uint64_t version() const;

  /// Returns true if a buffer is free, or another one could be made. It stays free until `begin`.
  bool has_room();
  /// Returns a free buffer for the next version, valid until `commit` or the next `begin`. Throws IoError without room.
  std::byte* begin();
  /// Makes the buffer written since `begin` the current version.
  std::shared_ptr<const Hold> commit(uint64_t version, std::span<const std::byte> ledger);
  /// Replaces the ledger of the current version.
  void commit_ledger(std::span<const std::byte> ledger);
  /// Makes the current buffer another version, with another ledger.
  void commit_in_place(uint64_t version, std::span<const std::byte> ledger);
  /// Makes updates in place as durable as commits are.
  void sync_current();

 private:
  [[nodiscard]] uint64_t current_version() const LOCKSTEP_REQUIRES(mutex_);
  [[nodiscard]] std::shared_ptr<const Hold> hold_current() LOCKSTEP_REQUIRES(mutex_);
  [[nodiscard]] size_t find_free() const LOCKSTEP_REQUIRES(mutex_);
  [[nodiscard]] size_t writing() const;
  [[nodiscard]] Commit in_place(std::span<const std::byte> ledger) const;
  void release(size_t buffer);

  const BufferLayout layout_;
  const std::unique_ptr<StateMemory> memory_;
  base::Mutex committing_;  // taken before mutex_; held during waits for the disk, which `current` never does
  mutable base::Mutex mutex_;
  std::vector<int> holds_ LOCKSTEP_GUARDED_BY(mutex_);  // holds per buffer
  size_t current_ LOCKSTEP_GUARDED_BY(mutex_);
  size_t previous_ LOCKSTEP_GUARDED_BY(mutex_);  // the previous version's buffer, kept whole if the memory wants it
  size_t writing_ LOCKSTEP_GUARDED_BY(mutex_);
  uint64_t version_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
  Ledger ledger_ LOCKSTEP_GUARDED_BY(mutex_);
};

}  // namespace lockstep::ps
