// Placeholder until the real one is merged.
#pragma once

#include <vector>

#include "graph/program.h"

namespace lockstep::allreduce {

class Buckets {
 public:
  Buckets(size_t count, size_t bytes) {
    const size_t most = std::max<size_t>(bytes / sizeof(float), 1);
    for (size_t end = count; end > 0;) {
      const size_t begin = end > most ? end - most : 0;
      ranges_.push_back({begin, end - begin});
      end = begin;
    }
    if (ranges_.empty()) ranges_.push_back({0, 0});
    left_.resize(ranges_.size());
  }
  [[nodiscard]] size_t size() const { return ranges_.size(); }
  [[nodiscard]] graph::ParameterRange range(size_t i) const { return ranges_[i]; }
  void begin() {
    for (size_t i = 0; i < size(); ++i) left_[i] = ranges_[i].count;
    next_ = 0;
  }
  size_t announced(graph::ParameterRange range) {
    for (size_t i = 0; i < size(); ++i) {
      const size_t from = std::max(range.offset, ranges_[i].offset);
      const size_t to = std::min(range.offset + range.count, ranges_[i].offset + ranges_[i].count);
      if (to > from) left_[i] -= to - from;
    }
    const size_t before = next_;
    while (next_ < size() && left_[next_] == 0) ++next_;
    return next_ - before;
  }

 private:
  std::vector<graph::ParameterRange> ranges_;
  std::vector<size_t> left_;
  size_t next_ = 0;
};

}  // namespace lockstep::allreduce
