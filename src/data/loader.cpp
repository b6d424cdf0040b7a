#include "data/loader.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <exception>
#include <new>
#include <span>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/signals.h"
#include "data/chunk_ring.h"
#include "data/image_copier.h"
#include "lockstep/error.h"

namespace lockstep::data {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kChunkBytes = size_t{128} << 10;
constexpr size_t kRingBytes = size_t{4} << 20;
constexpr size_t kMostBytes = size_t{64} << 20;  ///< size of a ring of large batches; two batches are always allowed
constexpr size_t kMaxBatchesPerChunk = 256;
constexpr size_t kMaxChunks = 32;

template <class T>
struct AlignedDelete {
  void operator()(T* values) const { ::operator delete (values, std::align_val_t{kAlignment}); }
};

template <class T>
using AlignedArray = std::unique_ptr<T[], AlignedDelete<T>>;

template <class T>
AlignedArray<T> make_aligned(size_t count) {
  return AlignedArray<T>(static_cast<T*>(::operator new (count * sizeof(T), std::align_val_t{kAlignment})));
}

/// Rounds up so that the next batch is aligned again.
template <class T>
size_t aligned_count(size_t count) {
  constexpr size_t kStep = kAlignment / sizeof(T);
  return (count + kStep - 1) / kStep * kStep;
}

LoaderOptions checked(const Examples& examples, LoaderOptions options) {
  const auto reject_negative = [](int64_t value, const char* what) {
    if (value < 0) throw UsageError(fmt::format("{} {}; 0 or more is allowed", what, value));
  };
  reject_negative(options.steps_per_epoch, "steps_per_epoch");
  reject_negative(options.repeat, "repeat");
  if (options.depth < 1) throw UsageError(fmt::format("depth {}; at least 1 is allowed", options.depth));
  if (!examples.labels.empty() && static_cast<int64_t>(examples.labels.size()) != examples.stored()) {
    throw DataError(fmt::format("{} examples but {} labels", examples.stored(), examples.labels.size()));
  }
  if (options.pixels != nullptr && !options.pixels->empty() && options.pixels->mean.size() != examples.shape.size()) {
    throw UsageError(fmt::format("pixels are scaled for images of {} values, these have {}",
                                 options.pixels->mean.size(), examples.shape.size()));
  }
  if (options.shrink_batch) {
    const int64_t most = examples.count() / std::max(options.shard.count, 1);
    options.batch = std::min(options.batch, std::max<int64_t>(most, 1));
  }
  return options;
}

Plan first_plan(const Examples& examples, const LoaderOptions& options) {
  check_batch(examples.count(), options.batch, options.shard.count);
  return {0, options.start, options.shard, options.batch, examples.count(), options.rounds_done};
}

/// Returns the most ranges that a round of the plan may have.
size_t most_ranges(const Plan& plan) {
  size_t most = 1;
  for (const PassPart& part : plan.data.parts) most = std::max(most, part.ranges.size());
  return most;
}

}  // namespace

LoaderOptions LoaderOptions::evaluation(int64_t batch) {
  LoaderOptions options;
  options.batch = batch;
  options.shuffle = Shuffle::none();
  options.shrink_batch = true;
  return options;
}

class Loader::Impl {
 public:
  Impl(const Examples& examples, const LoaderOptions& options);
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl();

  const Batch* next() {
    if (cursor_ == cursor_end_ && !next_chunk()) return nullptr;
    ++given_;
    return cursor_++;
  }

  void restart(std::shared_ptr<const Rounds> rounds);
  void restart() { restart(rounds_); }
  [[nodiscard]] Remainder remainder() const;
  [[nodiscard]] const Plan& plan() const { return rounds_->plan(); }
  [[nodiscard]] int64_t examples() const { return examples_.count(); }
  [[nodiscard]] const ChunkRing& ring() const { return ring_; }

 private:
  struct Chunk {
    float* images = nullptr;
    int32_t* labels = nullptr;
    std::vector<Batch> batches;
    size_t used = 0;
    bool ends_stream = false;
  };

  bool next_chunk();
  [[nodiscard]] size_t batch_bytes() const;
  [[nodiscard]] size_t chunk_count() const;

  // Runs on the background thread.
  void run();
  void allocate(int64_t batch);
  void produce(const ChunkRing::Request& request);
  void fill_chunk(Chunk& chunk, const Rounds& rounds, int64_t& at);
  void describe(Batch& batch, const Plan& plan, int64_t index) const;
  void copy_images(float* images);
  void copy_labels(int32_t* labels);

  const Examples& examples_;
  const LoaderOptions options_;
  std::shared_ptr<const Rounds> rounds_;  ///< the consumer's plan
  const size_t pixels_;
  const size_t stored_;  ///< examples stored; a pass may repeat them
  const ImageCopier copier_;
  const size_t batches_per_chunk_;
  const base::TraceLabel* traced_ = nullptr;
  ChunkRing ring_;
  std::vector<Chunk> chunks_;
  AlignedArray<float> images_;
  AlignedArray<int32_t> labels_;

  // Used only by the background thread, once it runs.
  int64_t room_ = 0;         ///< capacity of a batch, in examples
  size_t image_stride_ = 0;  ///< values between the batches of a chunk
  size_t label_stride_ = 0;
  EpochOrder order_;
  Round round_;

  // Used only by the consumer.
  const Batch* cursor_ = nullptr;
  const Batch* cursor_end_ = nullptr;
  int64_t given_ = 0;  ///< rounds of the plan returned so far
  bool holds_chunk_ = false;
  bool ended_ = false;

  std::thread thread_;
};

Loader::Impl::Impl(const Examples& examples, const LoaderOptions& options)
    : examples_(examples),
      options_(checked(examples, options)),
      rounds_(std::make_shared<const Rounds>(first_plan(examples, options_))),
      pixels_(examples.shape.size()),
      stored_(static_cast<size_t>(examples.stored())),
      copier_(examples, options_.scale, options_.pixels),
      batches_per_chunk_(std::clamp<size_t>(kChunkBytes / batch_bytes(), 1, kMaxBatchesPerChunk)),
      ring_(chunk_count()),
      order_(examples.count(), options_.shuffle, options_.seed) {
  if (options_.trace != nullptr) traced_ = options_.trace->tracer().label({"make batches", "data", {}, "batches"});
  chunks_.resize(chunk_count());
  for (Chunk& chunk : chunks_) chunk.batches.resize(batches_per_chunk_);
  allocate(options_.batch);
  round_.ranges.reserve(most_ranges(plan()));
  ring_.request(rounds_);
  const base::SignalsBlocked blocked;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    throw LimitError("the loader: " + base::error_text(error));
  }
}

Loader::Impl::~Impl() {
  ring_.stop();
  thread_.join();
}

size_t Loader::Impl::batch_bytes() const {
  return aligned_count<float>(static_cast<size_t>(options_.batch) * pixels_) * sizeof(float);
}

size_t Loader::Impl::chunk_count() const {
  const size_t bytes = batches_per_chunk_ * batch_bytes();
  const size_t for_depth = (static_cast<size_t>(options_.depth) + batches_per_chunk_ - 1) / batches_per_chunk_ + 1;
  const size_t affordable = std::max<size_t>(kMostBytes / bytes, 2);
  return std::min(affordable, std::max(for_depth, std::min(kRingBytes / bytes, kMaxChunks)));
}

void Loader::Impl::allocate(int64_t batch) {
  const size_t batches = chunks_.size() * batches_per_chunk_;
  image_stride_ = aligned_count<float>(static_cast<size_t>(batch) * pixels_);
  label_stride_ = aligned_count<int32_t>(static_cast<size_t>(batch));
  room_ = 0;
  images_.reset();
  images_ = make_aligned<float>(batches * image_stride_);
  if (!examples_.labels.empty()) labels_ = make_aligned<int32_t>(batches * label_stride_);
  for (size_t i = 0; i < chunks_.size(); ++i) {
    chunks_[i].images = images_.get() + i * batches_per_chunk_ * image_stride_;
    if (labels_) chunks_[i].labels = labels_.get() + i * batches_per_chunk_ * label_stride_;
  }
  room_ = batch;
}

bool Loader::Impl::next_chunk() {
  if (ended_) return false;
  if (holds_chunk_) ring_.release();
  holds_chunk_ = false;
  const Chunk& chunk = chunks_[ring_.take()];
  holds_chunk_ = true;
  ended_ = chunk.ends_stream;
  cursor_ = chunk.batches.data();
  cursor_end_ = cursor_ + chunk.used;
  return cursor_ != cursor_end_;
}

void Loader::Impl::restart(std::shared_ptr<const Rounds> rounds) {
  cursor_ = cursor_end_ = nullptr;
  given_ = 0;
  holds_chunk_ = ended_ = false;
  rounds_ = std::move(rounds);
  ring_.request(rounds_);
}

Remainder Loader::Impl::remainder() const {
  if (plan().shard.count != 1) {
    throw UsageError(fmt::format("a loader of {} members does not know the remaining data", plan().shard.count));
  }
  return unapplied(plan(), {&given_, 1});
}

void Loader::Impl::run() {
  pthread_setname_np(pthread_self(), "lockstep-data");
  uint64_t generation = 0;
  while (const auto request = ring_.wait_for_request(generation)) {
    generation = request->generation;
    std::exception_ptr error;
    try {
      produce(*request);
    } catch (...) {
      error = std::current_exception();
    }
    if (error)
      ring_.fail(generation,
                 std::move(error));  // outside the catch block, so that the consumer holds the last reference
  }
}

void Loader::Impl::produce(const ChunkRing::Request& request) {
  const Plan& plan = request.rounds->plan();
  if (plan.batch > room_) allocate(plan.batch);
  round_.ranges.reserve(most_ranges(plan));
  int64_t at = 0;
  bool more = true;
  while (more) {
    const auto slot = ring_.acquire(request.generation);
    if (!slot) return;
    Chunk& chunk = chunks_[*slot];
    const bool traced = options_.trace != nullptr && options_.trace->on();
    const auto before = traced ? base::Tracer::Clock::now() : base::Tracer::Clock::time_point();
    fill_chunk(chunk, *request.rounds, at);
    if (traced) options_.trace->span(traced_, before, base::Tracer::Clock::now(), chunk.used);
    more = ring_.publish(request.generation) && !chunk.ends_stream;
  }
}

void Loader::Impl::fill_chunk(Chunk& chunk, const Rounds& rounds, int64_t& at) {
  chunk.used = 0;
  const auto read_round = [&] {
    rounds.read(at, round_);
    return options_.repeat == 0 || round_.pass < options_.repeat;
  };
  bool more = read_round();
  while (chunk.used < batches_per_chunk_ && more) {
    Batch& batch = chunk.batches[chunk.used];
    describe(batch, rounds.plan(), at);
    float* images = chunk.images + chunk.used * image_stride_;
    batch.images = images;
    copy_images(images);
    if (chunk.labels != nullptr) {
      int32_t* labels = chunk.labels + chunk.used * label_stride_;
      batch.labels = labels;
      copy_labels(labels);
    }
    ++chunk.used;
    ++at;
    more = read_round();
  }
  chunk.ends_stream = !more;
}

void Loader::Impl::describe(Batch& batch, const Plan& plan, int64_t index) const {
  batch.count = round_.count;
  batch.global_count = round_.global_count;
  batch.first_row = round_.first_row;
  batch.round = index;
  batch.pass = round_.pass;
  if (options_.steps_per_epoch == 0) {
    batch.epoch = round_.pass;
    batch.last_in_epoch = round_.index_in_part == round_.rounds_in_part - 1;
  } else {
    const int64_t made = plan.rounds_done + index;
    batch.epoch = made / options_.steps_per_epoch;
    batch.last_in_epoch = (made + 1) % options_.steps_per_epoch == 0;
  }
}

void Loader::Impl::copy_images(float* images) {
  constexpr size_t kAhead = 4;
  const std::span<const uint32_t> order = order_.pass(round_.pass);
  for (const base::Range& range : round_.ranges) {
    const auto end = static_cast<size_t>(range.end);
    for (auto i = static_cast<size_t>(range.begin); i < end; ++i, images += pixels_) {
      if (i + kAhead < order.size()) copier_.prefetch(order[i + kAhead] % stored_);
      copier_.copy(order[i] % stored_, images);
    }
  }
}

void Loader::Impl::copy_labels(int32_t* labels) {
  const std::span<const uint32_t> order = order_.pass(round_.pass);
  for (const base::Range& range : round_.ranges) {
    for (const uint32_t index : order.subspan(static_cast<size_t>(range.begin), static_cast<size_t>(range.size()))) {
      const int32_t label = examples_.labels[index % stored_];
      if (examples_.classes > 0 && (label < 0 || label >= examples_.classes)) {
        throw DataError(fmt::format("label {} of example {} is out of range; 0 to {} are allowed", label, index,
                                    examples_.classes - 1));
      }
      *labels++ = label;
    }
  }
}

Loader::Loader(const Examples& examples, const LoaderOptions& options)
    : impl_(std::make_unique<Impl>(examples, options)) {}

Loader::~Loader() = default;

const Batch* Loader::next() { return impl_->next(); }
void Loader::restart() { impl_->restart(); }
const Plan& Loader::plan() const { return impl_->plan(); }
Remainder Loader::remainder() const { return impl_->remainder(); }
double Loader::seconds_waited() const { return impl_->ring().seconds_waited(); }

void Loader::restart(Plan plan) {
  if (plan.examples != impl_->examples()) {
    throw UsageError(fmt::format("a plan for {} examples, but there are {}", plan.examples, impl_->examples()));
  }
  impl_->restart(std::make_shared<const Rounds>(std::move(plan)));
}

}  // namespace lockstep::data
