#include "allreduce/bucket_sender.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "transport/convert.h"

namespace lockstep::allreduce {
namespace {

transport::Element wire_element(collective::Element element) {
  return element == collective::Element::bfloat16 ? transport::Element::kBfloat16 : transport::Element::kFloat16;
}

}  // namespace

BucketSender::BucketSender(program::ParameterStore& parameters, const BucketSenderOptions& options)
    : parameters_(parameters),
      wire_(options.wire),
      bucket_bytes_(options.bucket_bytes),
      buckets_(parameters.count(), options.bucket_bytes) {
  if (options.top_k > 0) top_k_.emplace(parameters.count(), options.top_k);
  if (options.trace == nullptr) return;
  base::Tracer& tracer = options.trace->tracer();
  operations_ = &tracer.track(fmt::format("communication ({})", options.trace->name()));
  label_ = tracer.label({"all-reduce", "exchange", {}, "bucket"});
}

void BucketSender::use(collective::Collective& group, size_t bucket_bytes) {
  group_ = &group;
  if (top_k_) top_k_->reset();
  cut(bucket_bytes);
}

void BucketSender::leave_group() {
  communicator_.reset();
  group_ = nullptr;
}

void BucketSender::cut(size_t bucket_bytes) {
  if (bucket_bytes != bucket_bytes_) buckets_ = schedule::Buckets(parameters_.count(), bucket_bytes);
  bucket_bytes_ = bucket_bytes;
  const int members = group_->size();
  last_.resize(notes_size(members) + buckets_.range(buckets_.size() - 1).count);
  if (plain()) return;
  size_t largest = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) largest = std::max(largest, buckets_.range(i).count);
  if (top_k_) {
    sparse_.resize(top_k_->kept(largest));
    everyones_.resize(sparse_.size() * static_cast<size_t>(members));
  } else {
    halves_.resize(largest);
  }
}

void BucketSender::begin(float weight, bool traced) {
  weight_ = weight;
  traced_ = traced && operations_ != nullptr;
  posted_ = 0;
  buckets_.begin();
}

void BucketSender::ready(program::ParameterRange range) {
  const size_t complete = posted_ + buckets_.announced(range);
  while (posted_ < complete && posted_ + 1 < buckets_.size()) post(posted_);
}

void BucketSender::post(size_t index) {
  ++posted_;
  if (!traced_) {
    communicator_.post([this, index] { return reduce(buckets_.range(index)); });
    return;
  }
  communicator_.post([this, index] {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point before = Clock::now();
    base::Status done = reduce(buckets_.range(index));
    operations_->span(label_, before, Clock::now(), index);
    return done;
  });
}

std::span<float> BucketSender::gradients(program::ParameterRange range) const {
  return parameters_.gradients().subspan(range.offset, range.count);
}

void BucketSender::scale(std::span<float> values) const {
  if (weight_ == 1.0F) return;
  for (float& value : values) value *= weight_;
}

base::Status BucketSender::reduce(program::ParameterRange range) {
  const std::span<float> values = gradients(range);
  scale(values);
  if (top_k_) return reduce_sparse(range.offset, values);
  if (wire_ != collective::Element::float32) return reduce_halves(values);
  return group_->all_reduce(values);
}

base::Status BucketSender::reduce_halves(std::span<float> values) {
  const transport::Element element = wire_element(wire_);
  const std::span<uint16_t> halves = std::span(halves_).first(values.size());
  transport::pack(element, values, std::as_writable_bytes(halves));
  base::Status done = group_->all_reduce(halves.data(), halves.size(), wire_);
  if (done) transport::unpack(element, std::as_bytes(halves), values);
  return done;
}

base::Status BucketSender::reduce_sparse(size_t offset, std::span<float> values) {
  const size_t kept = top_k_->kept(values.size());
  const std::span<SparseElement> mine = std::span(sparse_).first(kept);
  const std::span<SparseElement> all = std::span(everyones_).first(kept * static_cast<size_t>(group_->size()));
  top_k_->select(offset, values, mine);
  base::Status done = group_->all_gather(std::as_bytes(mine), std::as_writable_bytes(all));
  if (done) add_up(all, values);
  return done;
}

/// Sends the last bucket with the notes. If gradients are encoded, the notes follow in their own operation.
base::Status BucketSender::reduce_last() {
  const program::ParameterRange range = buckets_.range(buckets_.size() - 1);
  const size_t notes = notes_size(group_->size());
  if (!plain()) {
    base::Status done = reduce(range);
    return done ? group_->all_reduce(std::span(last_).first(notes)) : done;
  }
  const std::span<float> values = gradients(range);
  scale(values);
  std::copy(values.begin(), values.end(), last_.begin() + static_cast<ptrdiff_t>(notes));
  base::Status done = group_->all_reduce(std::span(last_).first(notes + range.count));
  if (done) std::copy_n(last_.begin() + static_cast<ptrdiff_t>(notes), range.count, values.begin());
  return done;
}

base::Status BucketSender::complete(const Note& note, Notes& notes) {
  if (note.report.examples == 0) {
    // No gradients of this member: buckets not yet posted are zero.
    for (size_t i = posted_; i < buckets_.size(); ++i) std::ranges::fill(gradients(buckets_.range(i)), 0.0F);
  }
  while (posted_ + 1 < buckets_.size()) post(posted_);
  const int members = group_->size();
  write_note(note, group_->rank(), std::span(last_).first(notes_size(members)));
  base::Status done = communicator_.run([this] { return reduce_last(); });
  if (done) read_notes(std::span(last_).first(notes_size(members)), members, notes);
  return done;
}

}  // namespace lockstep::allreduce
