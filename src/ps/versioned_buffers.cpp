#include "ps/versioned_buffers.h"

#include <utility>

#include "lockstep/error.h"

namespace lockstep::ps {
namespace {

constexpr size_t kNoBuffer = SIZE_MAX;

}  // namespace

VersionedBuffers::Hold::Hold(std::shared_ptr<VersionedBuffers> owner, size_t buffer, uint64_t version, Ledger ledger)
    : owner_(std::move(owner)),
      buffer_(buffer),
      memory_(owner_->memory_->buffer(buffer)),
      version_(version),
      ledger_(std::move(ledger)) {}

VersionedBuffers::Hold::~Hold() { owner_->release(buffer_); }

VersionedBuffers::VersionedBuffers(std::unique_ptr<StateMemory> memory, const BufferLayout& layout)
    : layout_(layout), memory_(std::move(memory)), current_(kNoBuffer), previous_(kNoBuffer), writing_(kNoBuffer) {
  holds_.resize(memory_->buffers());
  if (auto found = memory_->recovered()) {
    current_ = found->buffer;
    version_ = found->version;
    ledger_ = std::make_shared<const std::vector<std::byte>>(std::move(found->ledger));
  }
}

bool VersionedBuffers::initialised() const {
  const base::MutexLock lock(mutex_);
  return current_ != kNoBuffer;
}

std::shared_ptr<const VersionedBuffers::Hold> VersionedBuffers::current() {
  const base::MutexLock lock(mutex_);
  return hold_current();
}

uint64_t VersionedBuffers::version() const {
  const base::MutexLock lock(mutex_);
  return current_version();
}

uint64_t VersionedBuffers::current_version() const {
  return version_ + layout_.updates_in_place(memory_->buffer(current_)).load(std::memory_order_acquire);
}

std::shared_ptr<const VersionedBuffers::Hold> VersionedBuffers::hold_current() {
  auto hold = std::make_shared<const Hold>(shared_from_this(), current_, current_version(), ledger_);
  ++holds_[current_];
  return hold;
}

size_t VersionedBuffers::find_free() const {
  const size_t kept = memory_->keeps_previous() ? previous_ : kNoBuffer;
  for (size_t i = 0; i < holds_.size(); ++i) {
    if (holds_[i] == 0 && i != current_ && i != kept) return i;
  }
  return kNoBuffer;
}

bool VersionedBuffers::has_room() {
  const base::MutexLock lock(mutex_);
  if (find_free() != kNoBuffer) return true;
  if (!memory_->grow()) return false;
  holds_.resize(memory_->buffers());
  return true;
}

std::byte* VersionedBuffers::begin() {
  if (!has_room()) throw IoError("no buffer is free for the next version of the parameters");
  const base::MutexLock lock(mutex_);
  writing_ = find_free();
  return memory_->buffer(writing_);
}

std::shared_ptr<const VersionedBuffers::Hold> VersionedBuffers::commit(uint64_t version,
                                                                       std::span<const std::byte> ledger) {
  const base::MutexLock commit_lock(committing_);
  const size_t buffer = writing();
  layout_.updates_in_place(memory_->buffer(buffer)).store(0, std::memory_order_relaxed);
  memory_->sync(buffer);
  memory_->commit({version, buffer, ledger});
  auto copy = std::make_shared<const std::vector<std::byte>>(ledger.begin(), ledger.end());
  const base::MutexLock lock(mutex_);
  previous_ = std::exchange(current_, std::exchange(writing_, kNoBuffer));
  version_ = version;
  ledger_ = std::move(copy);
  return hold_current();
}

void VersionedBuffers::commit_ledger(std::span<const std::byte> ledger) {
  const base::MutexLock commit_lock(committing_);
  memory_->commit(in_place(ledger));
  auto copy = std::make_shared<const std::vector<std::byte>>(ledger.begin(), ledger.end());
  const base::MutexLock lock(mutex_);
  ledger_ = std::move(copy);
}

void VersionedBuffers::commit_in_place(uint64_t version, std::span<const std::byte> ledger) {
  const base::MutexLock commit_lock(committing_);
  Commit commit = in_place(ledger);
  commit.version = version - layout_.updates_in_place(memory_->buffer(commit.buffer)).load(std::memory_order_acquire);
  memory_->commit(commit);
  auto copy = std::make_shared<const std::vector<std::byte>>(ledger.begin(), ledger.end());
  const base::MutexLock lock(mutex_);
  version_ = commit.version;
  ledger_ = std::move(copy);
}

void VersionedBuffers::sync_current() {
  const base::MutexLock commit_lock(committing_);
  memory_->sync(in_place({}).buffer);
}

size_t VersionedBuffers::writing() const {
  const base::MutexLock lock(mutex_);
  return writing_;
}

Commit VersionedBuffers::in_place(std::span<const std::byte> ledger) const {
  const base::MutexLock lock(mutex_);
  return {version_, current_, ledger};
}

void VersionedBuffers::release(size_t buffer) {
  const base::MutexLock lock(mutex_);
  --holds_[buffer];
}

}  // namespace lockstep::ps
