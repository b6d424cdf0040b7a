// The versions of a ParameterShard: which buffer is current, which are held, which may be written. A buffer is free
// when nobody holds it and it is not current; where none is free another is made, and where there is no room for one
// the writer waits until a hold ends.
//
// Threads: `begin` and `commit` by one writer at a time, the rest from any thread. Holds keep the memory alive, also
// when the ParameterShard is gone.
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

  /// A version that is held: its buffer is not written while this lives.
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
  /// The current version. Only when initialised.
  [[nodiscard]] std::shared_ptr<const Hold> current();
  [[nodiscard]] uint64_t version() const;

  /// A free buffer to write the next version into, until `commit` or the next `begin`.
  std::byte* begin();
  /// Makes what was written since `begin` the current version.
  std::shared_ptr<const Hold> commit(uint64_t version, std::span<const std::byte> ledger);
  /// Gives the current version another ledger.
  void commit_ledger(std::span<const std::byte> ledger);
  /// Counts an update in place of the version held; gives the version that it made.
  uint64_t count_in_place(const Hold& hold);
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
  base::Mutex committing_;  // taken before mutex_; held while the disk is waited for, which `current` never does
  mutable base::Mutex mutex_;
  base::Condition released_;
  std::vector<int> holds_ LOCKSTEP_GUARDED_BY(mutex_);  // per buffer
  size_t current_ LOCKSTEP_GUARDED_BY(mutex_);
  size_t previous_ LOCKSTEP_GUARDED_BY(mutex_);  // kept whole where the memory wants it
  size_t writing_ LOCKSTEP_GUARDED_BY(mutex_);
  uint64_t version_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
  Ledger ledger_ LOCKSTEP_GUARDED_BY(mutex_);
};

}  // namespace lockstep::ps
