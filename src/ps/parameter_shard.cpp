#include "ps/parameter_shard.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>

#include "base/mutex.h"
#include "base/parallel.h"
#include "lockstep/error.h"
#include "optim/update_kernels.h"
#include "ps/state_file.h"
#include "ps/state_memory.h"
#include "ps/versioned_buffers.h"
#include "tensor/buffer.h"

namespace lockstep::ps {
namespace {

/// Elements summed and applied before the next ones are fetched, so that their gradients stay in the cache.
constexpr size_t kBlock = 16384;
/// Fewest elements worth a second thread: fewer are updated before it has woken up.
constexpr int64_t kThreadElements = INT64_C(256) << 10;
constexpr size_t kBuffers = 3;  // one current, one being sent, one being written

size_t page_bytes() { return static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }

std::unique_ptr<StateMemory> make_memory(const ParameterShardOptions& options, const BufferLayout& layout) {
  if (options.durability == Durability::checkpoint) return std::make_unique<PlainMemory>(layout, kBuffers);
  if (options.file.empty()) throw UsageError("shard: durability needs a file");
  const StateFileOptions file{options.file, options.identity, options.ledger_bytes, kBuffers,
                              options.durability == Durability::machine};
  return std::make_unique<StateFile>(file, layout, page_bytes());
}

std::vector<std::string> slot_names_of(const optim::OptimizerSettings& settings) {
  optim::check(settings);
  const auto names = optim::slot_names(settings.method);
  return {names.begin(), names.end()};
}

/// Updates a block. Several threads may update the same block at once. Updates of single elements may then get lost;
/// this is the meaning of lock-free. A separate function, so that the thread sanitizer can exempt it.
[[gnu::noinline]] void update_in_place(const optim::OptimizerSettings& settings, const optim::Update& update,
                                       const optim::Block<float>& block, std::span<const float> gradient) {
  optim::apply_update(settings, update, block, gradient, block);
}

bool same(std::span<const Contribution> a, std::span<const Contribution> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Contribution& x, const Contribution& y) {
    return x.gradient.data() == y.gradient.data() && x.weight == y.weight;
  });
}

}  // namespace

class ParameterShard::Impl {
 public:
  explicit Impl(const ParameterShardOptions& options);

  View view(const std::shared_ptr<const VersionedBuffers::Hold>& hold) const;
  View initialise(uint64_t version, std::span<const float> parameters, std::span<const std::span<const float>> slots,
                  std::span<const std::byte> ledger);
  std::span<float> staging(size_t key);
  View apply(std::span<const Contribution> contributions, float mean_scale, const optim::Update& update,
             std::span<const std::byte> ledger);
  double sum_of_squares(std::span<const Contribution> contributions, float mean_scale);
  void apply_in_place(std::span<const float> gradient, const optim::Update& update);

  VersionedBuffers& buffers() { return *buffers_; }
  void check_ledger(std::span<const std::byte> ledger) const;
  void require_version() const;
  [[nodiscard]] const std::vector<std::string>& slot_names() const { return slot_names_; }
  [[nodiscard]] double commit_seconds() const { return commit_seconds_; }
  [[nodiscard]] uint64_t copied() const { return copied_.load(std::memory_order_relaxed); }

 private:
  void check(std::span<const Contribution> contributions) const;
  /// Sums a block of two or more contributions.
  void sum_block(std::span<const Contribution> contributions, float mean_scale, size_t first,
                 std::span<float> sum) const;
  template <class Block>
  void for_blocks(const Block& block) const;
  [[nodiscard]] optim::Block<float> block(std::byte* memory, size_t first, size_t count) const;

  const ParameterShardOptions options_;
  const std::vector<std::string> slot_names_;
  const BufferLayout layout_;
  const std::shared_ptr<VersionedBuffers> buffers_;
  std::vector<Buffer> scratch_;  // one block of sums per thread
  base::Mutex staging_mutex_;
  std::map<size_t, Buffer> staging_ LOCKSTEP_GUARDED_BY(staging_mutex_);
  Buffer sum_;                        // sum made by sum_of_squares, until it is applied
  std::vector<Contribution> summed_;  // contributions in that sum; empty: none
  float summed_scale_ = 1;
  double commit_seconds_ = 0;
  std::atomic<uint64_t> copied_{0};
};

ParameterShard::Impl::Impl(const ParameterShardOptions& options)
    : options_(options),
      slot_names_(slot_names_of(options.optimizer)),
      layout_(options.parameters, slot_names_.size(), page_bytes()),
      buffers_(std::make_shared<VersionedBuffers>(make_memory(options, layout_), layout_)) {
  for (int i = 0; i < options.threads; ++i) scratch_.emplace_back(kBlock * sizeof(float));
}

View ParameterShard::Impl::view(const std::shared_ptr<const VersionedBuffers::Hold>& hold) const {
  View view;
  view.version = hold->version();
  view.parameters = layout_.parameters(hold->memory());
  for (size_t i = 0; i < layout_.slots(); ++i) view.slots.emplace_back(layout_.slot(hold->memory(), i));
  view.ledger = hold->ledger();
  view.hold = hold;
  return view;
}

View ParameterShard::Impl::initialise(uint64_t version, std::span<const float> parameters,
                                      std::span<const std::span<const float>> slots,
                                      std::span<const std::byte> ledger) {
  check_ledger(ledger);
  const auto fits = [&](std::span<const float> values) { return values.size() == layout_.count(); };
  if (!fits(parameters) || (!slots.empty() && slots.size() != layout_.slots()) || !std::ranges::all_of(slots, fits)) {
    throw UsageError(fmt::format("shard of {} parameters and {} slots: given {} parameters and {} slots",
                                 layout_.count(), layout_.slots(), parameters.size(), slots.size()));
  }
  std::byte* memory = buffers_->begin();
  std::ranges::copy(parameters, layout_.parameters(memory).begin());
  for (size_t i = 0; i < layout_.slots(); ++i) {
    if (slots.empty()) {
      std::ranges::fill(layout_.slot(memory, i), 0.0F);
    } else {
      std::ranges::copy(slots[i], layout_.slot(memory, i).begin());
    }
  }
  return view(buffers_->commit(version, ledger));
}

std::span<float> ParameterShard::Impl::staging(size_t key) {
  const base::MutexLock lock(staging_mutex_);
  Buffer& buffer = staging_[key];
  if (buffer.data() == nullptr) buffer = Buffer(std::max<size_t>(layout_.count(), 1) * sizeof(float));
  return buffer.as<float>().first(layout_.count());
}

/// Calls block(thread, first, count) for all blocks, each thread its share.
template <class Block>
void ParameterShard::Impl::for_blocks(const Block& block) const {
  const auto count = static_cast<int64_t>(layout_.count());
  base::parallel(base::split_for(count, kThreadElements, options_.threads), [&](int thread, int of) {
    const base::Range mine = base::share(count, thread, of, kBlock);
    for (int64_t at = mine.begin; at < mine.end; at += kBlock) {
      block(static_cast<size_t>(thread), static_cast<size_t>(at),
            static_cast<size_t>(std::min<int64_t>(kBlock, mine.end - at)));
    }
  });
}

void ParameterShard::Impl::sum_block(std::span<const Contribution> contributions, float mean_scale, size_t first,
                                     std::span<float> sum) const {
  const auto part = [&](size_t i) { return contributions[i].gradient.subspan(first, sum.size()); };
  const float* so_far = part(0).data();
  for (size_t i = 1; i < contributions.size(); ++i) {
    const float scale = i + 1 == contributions.size() ? mean_scale : 1.0F;
    optim::add_weighted(contributions[i].weight, scale, so_far, part(i).data(), sum.data(), sum.size(), 1);
    so_far = sum.data();
  }
}

View ParameterShard::Impl::apply(std::span<const Contribution> contributions, float mean_scale,
                                 const optim::Update& update, std::span<const std::byte> ledger) {
  check(contributions);
  check_ledger(ledger);
  const auto from = buffers_->current();
  std::byte* to = buffers_->begin();
  const bool one = contributions.size() == 1;
  const bool summed = !one && mean_scale == summed_scale_ && same(contributions, summed_);
  const std::span<const float> whole = summed ? sum_.as<float>() : contributions[0].gradient;
  for_blocks([&](size_t thread, size_t first, size_t count) {
    std::span<const float> gradient;
    if (one || summed) {
      gradient = whole.subspan(first, count);
    } else {
      const auto sum = scratch_[thread].as<float>().first(count);
      sum_block(contributions, mean_scale, first, sum);
      gradient = sum;
    }
    optim::apply_update(options_.optimizer, update, block(from->memory(), first, count), gradient,
                        block(to, first, count));
  });
  summed_.clear();
  const auto before = std::chrono::steady_clock::now();
  View made = view(buffers_->commit(from->version() + 1, ledger));
  commit_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
  return made;
}

double ParameterShard::Impl::sum_of_squares(std::span<const Contribution> contributions, float mean_scale) {
  check(contributions);
  if (contributions.size() == 1) return optim::sum_of_squares(contributions[0].gradient, options_.threads);
  if (sum_.data() == nullptr) sum_ = Buffer(std::max<size_t>(layout_.count(), 1) * sizeof(float));
  const auto sum = sum_.as<float>().first(layout_.count());
  for_blocks([&](size_t /*thread*/, size_t first, size_t count) {
    sum_block(contributions, mean_scale, first, sum.subspan(first, count));
  });
  copied_ += sum.size_bytes();
  summed_.assign(contributions.begin(), contributions.end());
  summed_scale_ = mean_scale;
  return optim::sum_of_squares(sum, options_.threads);
}

void ParameterShard::Impl::apply_in_place(std::span<const float> gradient, const optim::Update& update) {
  const Contribution one{gradient};
  check({&one, 1});
  const auto hold = buffers_->current();
  for (size_t first = 0; first < layout_.count(); first += kBlock) {
    const size_t count = std::min(kBlock, layout_.count() - first);
    update_in_place(options_.optimizer, update, block(hold->memory(), first, count), gradient.subspan(first, count));
  }
  buffers_->sync_current();
}

optim::Block<float> ParameterShard::Impl::block(std::byte* memory, size_t first, size_t count) const {
  optim::Block<float> block{layout_.parameters(memory).subspan(first, count), {}};
  for (size_t i = 0; i < layout_.slots(); ++i) block.slots[i] = layout_.slot(memory, i).subspan(first, count);
  return block;
}

void ParameterShard::Impl::check(std::span<const Contribution> contributions) const {
  require_version();
  if (contributions.empty()) throw UsageError("shard: an update without contributions");
  for (const Contribution& contribution : contributions) {
    if (contribution.gradient.size() == layout_.count()) continue;
    throw UsageError(
        fmt::format("shard of {} parameters: a gradient of {}", layout_.count(), contribution.gradient.size()));
  }
}

void ParameterShard::Impl::check_ledger(std::span<const std::byte> ledger) const {
  if (ledger.size() <= options_.ledger_bytes) return;
  throw UsageError(
      fmt::format("shard: a ledger of {} bytes; at most {} is allowed", ledger.size(), options_.ledger_bytes));
}

void ParameterShard::Impl::require_version() const {
  if (!buffers_->initialised()) throw UsageError("shard: asked for a version before it was initialised");
}

ParameterShard::ParameterShard(const ParameterShardOptions& options) : impl_(std::make_unique<Impl>(options)) {}
ParameterShard::~ParameterShard() = default;

bool ParameterShard::initialised() const { return impl_->buffers().initialised(); }

void ParameterShard::initialise(uint64_t version, std::span<const float> parameters,
                                std::span<const std::span<const float>> slots, std::span<const std::byte> ledger) {
  impl_->initialise(version, parameters, slots, ledger);
}

View ParameterShard::current() const {
  impl_->require_version();
  return impl_->view(impl_->buffers().current());
}

uint64_t ParameterShard::version() const {
  impl_->require_version();
  return impl_->buffers().version();
}

std::span<float> ParameterShard::staging(size_t key) { return impl_->staging(key); }

bool ParameterShard::has_room() { return impl_->buffers().has_room(); }

View ParameterShard::apply(std::span<const Contribution> contributions, float mean_scale, const optim::Update& update,
                           std::span<const std::byte> ledger) {
  return impl_->apply(contributions, mean_scale, update, ledger);
}

double ParameterShard::sum_of_squares(std::span<const Contribution> contributions, float mean_scale) {
  return impl_->sum_of_squares(contributions, mean_scale);
}

void ParameterShard::apply_in_place(std::span<const float> gradient, const optim::Update& update) {
  impl_->apply_in_place(gradient, update);
}

void ParameterShard::commit_in_place(uint64_t version, std::span<const std::byte> ledger) {
  impl_->require_version();
  impl_->check_ledger(ledger);
  impl_->buffers().commit_in_place(version, ledger);
}

void ParameterShard::commit_ledger(std::span<const std::byte> ledger) {
  impl_->require_version();
  impl_->check_ledger(ledger);
  impl_->buffers().commit_ledger(ledger);
}

double ParameterShard::commit_seconds() const { return impl_->commit_seconds(); }
const std::vector<std::string>& ParameterShard::slot_names() const { return impl_->slot_names(); }
uint64_t ParameterShard::bytes_copied() const { return impl_->copied(); }

}  // namespace lockstep::ps
