#include "predict/step_parts.h"

#include <algorithm>

#include "schedule/buckets.h"
#include "schedule/push_buckets.h"

namespace lockstep::predict {
namespace {

using schedule::ParameterRange;

struct Announcement {
  double share;
  ParameterRange range;
};

/// Returns the gradients in the order in which they become final.
std::vector<Announcement> announcements(const Training& training) {
  std::vector<Announcement> all;
  size_t offset = 0;
  for (const Tensor& tensor : training.tensors) {
    all.push_back({std::clamp(tensor.announced, 0.0, 1.0), {offset, tensor.count}});
    offset += tensor.count;
  }
  std::reverse(all.begin(), all.end());
  std::stable_sort(all.begin(), all.end(),
                   [](const Announcement& a, const Announcement& b) { return a.share < b.share; });
  return all;
}

using Places = std::vector<std::vector<ParameterRange>>;

Places places_of(const Training& training) {
  std::vector<graph::ParameterInfo> infos;
  size_t offset = 0;
  for (const Tensor& tensor : training.tensors) {
    graph::ParameterInfo info;
    info.shape = Shape{static_cast<int64_t>(tensor.count)};
    info.offset = offset;
    offset += tensor.count;
    infos.push_back(std::move(info));
  }
  return schedule::place(infos, static_cast<int>(training.servers.size()), training.placement);
}

StepPart part_to_servers(const Training& training, const Places& places, double share, ParameterRange range) {
  StepPart part{share, {}, {}};
  for (const auto& place : places) {
    double elements = 0;
    const std::vector<schedule::Slice> slices = schedule::intersect(place, range);
    for (const schedule::Slice& slice : slices) elements += static_cast<double>(slice.global.count);
    part.bytes.push_back(elements * training.element_bytes);
    part.messages.push_back(static_cast<int>(slices.size()));
  }
  return part;
}

}  // namespace

std::vector<StepPart> push_parts(const Training& training) {
  const Places places = places_of(training);
  std::vector<StepPart> parts;
  schedule::PushBuckets buckets(training.push_bucket);
  buckets.begin();
  double before = 0;
  for (const Announcement& next : announcements(training)) {
    buckets.announced(next.range, [&](ParameterRange bucket) {
      parts.push_back(part_to_servers(training, places, next.share - before, bucket));
      before = next.share;
    });
  }
  parts.push_back(part_to_servers(training, places, 1 - before, buckets.rest()));
  for (int& messages : parts.back().messages) messages = std::max(messages, 1);  // the end of the push
  return parts;
}

std::vector<StepPart> all_reduce_parts(const Training& training) {
  schedule::Buckets buckets(training.elements(), training.all_reduce_bucket);
  std::vector<StepPart> parts;
  buckets.begin();
  double before = 0;
  size_t done = 0;
  const auto bytes = [&](size_t i) { return static_cast<double>(buckets.range(i).count) * training.element_bytes; };
  for (const Announcement& next : announcements(training)) {
    const size_t complete = done + buckets.announced(next.range);
    StepPart part{next.share - before, {}, {}};
    while (done < complete && done + 1 < buckets.size()) part.bytes.push_back(bytes(done++));
    if (part.bytes.empty()) continue;
    before = next.share;
    parts.push_back(std::move(part));
  }
  parts.push_back({1 - before, {}, {}});
  while (done < buckets.size()) parts.back().bytes.push_back(bytes(done++));  // the last one goes with the notes
  return parts;
}

std::vector<double> bytes_of_servers(const Training& training) {
  std::vector<double> bytes;
  for (const auto& place : places_of(training)) {
    double elements = 0;
    for (const ParameterRange& range : place) elements += static_cast<double>(range.count);
    bytes.push_back(elements * training.element_bytes);
  }
  return bytes;
}

}  // namespace lockstep::predict
