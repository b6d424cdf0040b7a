#include "data/loader.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <new>
#include <span>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "data/chunk_ring.h"
#include "data/image_copier.h"
#include "lockstep/error.h"

namespace lockstep::data {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kChunkBytes = size_t{128} << 10;
constexpr size_t kRingBytes = size_t{4} << 20;
constexpr size_t kMostBytes = size_t{64} << 20;  ///< of a ring of large batches, unless two take more
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

/// Rounded up so that what follows is aligned again.
template <class T>
size_t aligned_count(size_t count) {
  constexpr size_t kStep = kAlignment / sizeof(T);
  return (count + kStep - 1) / kStep * kStep;
}

/// Signals are for the threads that expect them: a thread started within its life has all of them blocked.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

LoaderOptions checked(const Examples& examples, LoaderOptions options) {
  const auto reject_negative = [](int64_t value, const char* what) {
    if (value < 0) throw UsageError(fmt::format("{} {}; 0 or more is allowed", what, value));
  };
  reject_negative(options.steps_per_epoch, "steps_per_epoch");
  reject_negative(options.repeat, "repeat");
  if (options.depth < 1) throw UsageError(fmt::format("depth {}; at least 1 is allowed", options.depth));
  if (!examples.labels.empty() && static_cast<int64_t>(examples.labels.size()) != examples.stored()) {
    throw DataError(fmt::format("{} images but {} labels", examples.stored(), examples.labels.size()));
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
    if (cursor_ != cursor_end_) return last_ = cursor_++;
    return next_chunk();
  }

  void restart(Position position);
  [[nodiscard]] Position position() const;
  [[nodiscard]] const BatchPlan& plan() const { return plan_; }
  [[nodiscard]] const LoaderOptions& options() const { return options_; }
  [[nodiscard]] const ChunkRing& ring() const { return ring_; }

 private:
  struct Chunk {
    float* images = nullptr;
    int32_t* labels = nullptr;
    std::vector<Batch> batches;
    size_t used = 0;
    bool ends_stream = false;
  };

  const Batch* next_chunk();
  void check_position(Position position) const;
  void allocate();
  [[nodiscard]] size_t chunk_count() const;

  // On the background thread.
  void run();
  void produce(const ChunkRing::Request& request);
  void fill_chunk(Chunk& chunk, Position& at);
  void describe(Batch& batch, Position at) const;
  void copy_images(float* images, std::span<const uint32_t> order, base::Range range) const;
  void copy_labels(int32_t* labels, std::span<const uint32_t> order, base::Range range) const;

  const Examples& examples_;
  const LoaderOptions options_;
  const BatchPlan plan_;
  const size_t pixels_;
  const size_t stored_;  ///< the examples of a pass are these, over and over
  const ImageCopier copier_;
  const size_t image_stride_;  ///< values between the batches of a chunk
  const size_t label_stride_;
  const size_t batches_per_chunk_;
  ChunkRing ring_;
  std::vector<Chunk> chunks_;
  AlignedArray<float> images_;
  AlignedArray<int32_t> labels_;

  // The background thread's own.
  EpochOrder order_;

  // The consumer's own.
  const Batch* cursor_ = nullptr;
  const Batch* cursor_end_ = nullptr;
  const Batch* last_ = nullptr;
  bool holds_chunk_ = false;
  bool ended_ = false;
  Position start_;

  std::thread thread_;
};

Loader::Impl::Impl(const Examples& examples, const LoaderOptions& options)
    : examples_(examples),
      options_(checked(examples, options)),
      plan_(examples.count(), options_.batch, options_.shard),
      pixels_(examples.shape.size()),
      stored_(static_cast<size_t>(examples.stored())),
      copier_(examples, options_.scale, options_.pixels),
      image_stride_(aligned_count<float>(static_cast<size_t>(options_.batch) * pixels_)),
      label_stride_(aligned_count<int32_t>(static_cast<size_t>(options_.batch))),
      batches_per_chunk_(std::clamp<size_t>(kChunkBytes / (image_stride_ * sizeof(float)), 1, kMaxBatchesPerChunk)),
      ring_(chunk_count()),
      order_(examples.count(), options_.shuffle, options_.seed),
      start_(options_.start) {
  check_position(start_);
  allocate();
  ring_.request(start_);
  const SignalsBlocked blocked;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    throw IoError(std::string("cannot start the loader's thread: ") + error.what());
  }
}

Loader::Impl::~Impl() {
  ring_.stop();
  thread_.join();
}

size_t Loader::Impl::chunk_count() const {
  const size_t bytes = batches_per_chunk_ * image_stride_ * sizeof(float);
  const size_t for_depth = (static_cast<size_t>(options_.depth) + batches_per_chunk_ - 1) / batches_per_chunk_ + 1;
  const size_t affordable = std::max<size_t>(kMostBytes / bytes, 2);
  return std::min(affordable, std::max(for_depth, std::min(kRingBytes / bytes, kMaxChunks)));
}

void Loader::Impl::allocate() {
  const size_t batches = chunk_count() * batches_per_chunk_;
  images_ = make_aligned<float>(batches * image_stride_);
  if (!examples_.labels.empty()) labels_ = make_aligned<int32_t>(batches * label_stride_);
  chunks_.resize(chunk_count());
  for (size_t i = 0; i < chunks_.size(); ++i) {
    chunks_[i].images = images_.get() + i * batches_per_chunk_ * image_stride_;
    if (labels_) chunks_[i].labels = labels_.get() + i * batches_per_chunk_ * label_stride_;
    chunks_[i].batches.resize(batches_per_chunk_);
  }
}

void Loader::Impl::check_position(Position position) const {
  const bool at_end = options_.repeat != 0 && position.pass == options_.repeat && position.batch == 0;
  const bool within = position.pass >= 0 && position.batch >= 0 && position.batch < plan_.batches() &&
                      (options_.repeat == 0 || position.pass < options_.repeat);
  if (within || at_end) return;
  throw UsageError(fmt::format("cannot start at batch {} of pass {}: there are {} batches in a pass and {} passes",
                               position.batch, position.pass, plan_.batches(),
                               options_.repeat == 0 ? "endless" : std::to_string(options_.repeat)));
}

const Batch* Loader::Impl::next_chunk() {
  if (ended_) return nullptr;
  if (holds_chunk_) ring_.release();
  holds_chunk_ = false;
  const Chunk& chunk = chunks_[ring_.take()];
  holds_chunk_ = true;
  ended_ = chunk.ends_stream;
  cursor_ = chunk.batches.data();
  cursor_end_ = cursor_ + chunk.used;
  return cursor_ == cursor_end_ ? nullptr : last_ = cursor_++;
}

void Loader::Impl::restart(Position position) {
  check_position(position);
  start_ = position;
  cursor_ = cursor_end_ = last_ = nullptr;
  holds_chunk_ = ended_ = false;
  ring_.request(position);
}

Position Loader::Impl::position() const {
  if (last_ == nullptr) return start_;
  const Position next{last_->pass, last_->index_in_pass + 1};
  return next.batch < plan_.batches() ? next : Position{next.pass + 1, 0};
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
    if (error) ring_.fail(generation, std::move(error));  // out here, so that the consumer holds the last reference
  }
}

void Loader::Impl::produce(const ChunkRing::Request& request) {
  Position at = request.start;
  bool more = true;
  while (more) {
    const auto slot = ring_.acquire(request.generation);
    if (!slot) return;
    Chunk& chunk = chunks_[*slot];
    fill_chunk(chunk, at);
    more = ring_.publish(request.generation) && !chunk.ends_stream;
  }
}

void Loader::Impl::fill_chunk(Chunk& chunk, Position& at) {
  chunk.used = 0;
  const auto ended = [&] { return options_.repeat != 0 && at.pass >= options_.repeat; };
  while (chunk.used < batches_per_chunk_ && !ended()) {
    Batch& batch = chunk.batches[chunk.used];
    describe(batch, at);
    batch.images = chunk.images + chunk.used * image_stride_;
    copy_images(chunk.images + chunk.used * image_stride_, order_.pass(at.pass), plan_.range(at.batch));
    if (chunk.labels != nullptr) {
      batch.labels = chunk.labels + chunk.used * label_stride_;
      copy_labels(chunk.labels + chunk.used * label_stride_, order_.pass(at.pass), plan_.range(at.batch));
    }
    ++chunk.used;
    if (++at.batch == plan_.batches()) at = {at.pass + 1, 0};
  }
  chunk.ends_stream = ended();
}

void Loader::Impl::describe(Batch& batch, Position at) const {
  const int64_t per_epoch = options_.steps_per_epoch != 0 ? options_.steps_per_epoch : plan_.batches();
  const int64_t index = at.pass * plan_.batches() + at.batch;
  const base::Range all = plan_.global_range(at.batch);
  batch.count = plan_.range(at.batch).size();
  batch.global_count = all.size();
  batch.first_row = plan_.range(at.batch).begin - all.begin;
  batch.pass = at.pass;
  batch.index_in_pass = at.batch;
  batch.epoch = index / per_epoch;
  batch.index_in_epoch = index % per_epoch;
  batch.last_in_epoch = batch.index_in_epoch == per_epoch - 1;
}

void Loader::Impl::copy_images(float* images, std::span<const uint32_t> order, base::Range range) const {
  constexpr size_t kAhead = 4;
  const auto end = static_cast<size_t>(range.end);
  for (auto i = static_cast<size_t>(range.begin); i < end; ++i, images += pixels_) {
    if (i + kAhead < order.size()) copier_.prefetch(order[i + kAhead] % stored_);
    copier_.copy(order[i] % stored_, images);
  }
}

void Loader::Impl::copy_labels(int32_t* labels, std::span<const uint32_t> order, base::Range range) const {
  for (const uint32_t index : order.subspan(static_cast<size_t>(range.begin), static_cast<size_t>(range.size()))) {
    const int32_t label = examples_.labels[index % stored_];
    if (examples_.classes > 0 && (label < 0 || label >= examples_.classes)) {
      throw DataError(fmt::format("label {} of example {} is out of range; 0 to {} are allowed", label, index,
                                  examples_.classes - 1));
    }
    *labels++ = label;
  }
}

Loader::Loader(const Examples& examples, const LoaderOptions& options)
    : impl_(std::make_unique<Impl>(examples, options)) {}

Loader::~Loader() = default;

const Batch* Loader::next() { return impl_->next(); }
void Loader::restart(Position position) { impl_->restart(position); }
Position Loader::position() const { return impl_->position(); }
int64_t Loader::batches_per_pass() const { return impl_->plan().batches(); }
double Loader::seconds_waited() const { return impl_->ring().seconds_waited(); }

int64_t Loader::batches_per_epoch() const {
  const int64_t steps = impl_->options().steps_per_epoch;
  return steps != 0 ? steps : batches_per_pass();
}

int64_t Loader::batches_in_stream() const {
  const int64_t repeat = impl_->options().repeat;
  return repeat == 0 ? -1 : repeat * batches_per_pass();
}

}  // namespace lockstep::data
