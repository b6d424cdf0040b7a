#include "data/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "lockstep/error.h"

namespace lockstep::data {
namespace {

using base::Range;

constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 4;      ///< most rounds; practically endless
constexpr int64_t kMostExamples = std::numeric_limits<int32_t>::max();  ///< the limit of EpochOrder

int64_t divide_up(int64_t value, int64_t by) { return (value + by - 1) / by; }

int64_t global_batch(const Plan& plan) { return plan.batch * plan.shard.count; }

/// Returns all members' part of round `round` among `size` positions laid end to end, or one member's part.
Range cut(const Plan& plan, int64_t size, int64_t round) {
  const int64_t begin = round * global_batch(plan);
  return {begin, std::min(begin + global_batch(plan), size)};
}

Range cut(Range all, Shard shard) {
  const Range mine = base::share(all.size(), shard.index, shard.count);
  return {all.begin + mine.begin, all.begin + mine.end};
}

void append(std::vector<Range>& ranges, Range range) {
  if (range.size() == 0) return;
  if (!ranges.empty() && ranges.back().end == range.begin) {
    ranges.back().end = range.end;
  } else {
    ranges.push_back(range);
  }
}

std::vector<int64_t> ends_of(std::span<const Range> ranges) {
  std::vector<int64_t> ends;
  ends.reserve(ranges.size());
  int64_t end = 0;
  for (const Range& range : ranges) ends.push_back(end += range.size());
  return ends;
}

/// Appends the positions of [slice.begin, slice.end) of `ranges`, laid end to end.
void append_slice(std::span<const Range> ranges, std::span<const int64_t> ends, Range slice, std::vector<Range>& to) {
  auto i = static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), slice.begin) - ends.begin());
  while (slice.size() > 0) {
    const int64_t shift = ranges[i].end - ends[i];
    const int64_t end = std::min(slice.end, ends[i]);
    append(to, {slice.begin + shift, end + shift});
    slice.begin = end;
    ++i;
  }
}

/// Returns the part of `ranges` left after member i has applied its first done[i] rounds of them.
std::vector<Range> left_of(const Plan& plan, std::span<const Range> ranges, std::span<const int64_t> done) {
  const std::vector<int64_t> ends = ends_of(ranges);
  const int64_t size = ends.back();
  const auto [least, most] = std::minmax_element(done.begin(), done.end());
  std::vector<Range> left;
  for (int64_t round = *least; round < *most; ++round) {
    const Range all = cut(plan, size, round);
    for (int member = 0; member < plan.shard.count; ++member) {
      if (done[static_cast<size_t>(member)] > round) continue;
      append_slice(ranges, ends, cut(all, {member, plan.shard.count}), left);
    }
  }
  append_slice(ranges, ends, {std::min(*most * global_batch(plan), size), size}, left);
  return left;
}

/// Counts each member's rounds among the `count` from `first` on.
void clamp_into(std::span<const int64_t> done, int64_t first, int64_t count, std::vector<int64_t>& within) {
  within.clear();
  for (const int64_t rounds : done) within.push_back(std::clamp<int64_t>(rounds - first, 0, count));
}

void check_ranges(const PassPart& part, int64_t examples) {
  int64_t least = 0;
  for (const Range& range : part.ranges) {
    if (range.begin < least || range.end <= range.begin || range.end > examples) {
      throw UsageError(fmt::format("plan: positions {} to {} of pass {}; ascending ranges of 0 to {} are allowed",
                                   range.begin, range.end, part.pass, examples));
    }
    least = range.end + 1;
  }
}

void check_remainder(const Remainder& data, int64_t examples) {
  int64_t least = 0;
  for (const PassPart& part : data.parts) {
    if (part.pass < least || part.pass >= data.next_pass || part.ranges.empty()) {
      throw UsageError(
          fmt::format("plan: {} ranges of pass {}; parts of passes {} to {} in ascending order are allowed",
                      part.ranges.size(), part.pass, least, data.next_pass - 1));
    }
    check_ranges(part, examples);
    least = part.pass + 1;
  }
  if (data.next_pass < 0 || data.next_pass > kMost) {
    throw UsageError(fmt::format("plan: next pass {}; 0 to {} is allowed", data.next_pass, kMost));
  }
}

}  // namespace

int64_t PassPart::size() const {
  int64_t size = 0;
  for (const Range& range : ranges) size += range.size();
  return size;
}

Remainder remainder_after(int64_t pass, int64_t batches, int64_t batch, int64_t examples) {
  if (batches == 0) return {{}, pass};
  if (batches >= divide_up(examples, batch)) return {{}, pass + 1};
  return {{{pass, {{batches * batch, examples}}}}, pass + 1};
}

void Plan::check() const {
  if (shard.count < 1 || shard.index < 0 || shard.index >= shard.count) {
    throw UsageError(
        fmt::format("shard {} of {}: the index must be 0 to {}", shard.index, shard.count, shard.count - 1));
  }
  if (examples > kMostExamples) {
    throw UsageError(fmt::format("plan: {} examples; at most {} are allowed", examples, kMostExamples));
  }
  check_batch(examples, batch);
  if (rounds_done < 0 || rounds_done > kMost) {
    throw UsageError(fmt::format("plan: {} rounds done; 0 to {} are allowed", rounds_done, kMost));
  }
  check_remainder(data, examples);
}

Round Plan::round(int64_t index) const {
  Round round;
  Rounds(*this).read(index, round);
  return round;
}

int64_t Plan::rounds_before(int64_t pass) const { return Rounds(*this).before(pass); }

Rounds::Rounds(Plan plan) : plan_(std::move(plan)) {
  plan_.check();
  parts_.reserve(plan_.data.parts.size());
  for (const PassPart& part : plan_.data.parts) {
    parts_.push_back({part_rounds_, ends_of(part.ranges)});
    part_rounds_ += divide_up(parts_.back().ends.back(), global_batch(plan_));
  }
  rounds_per_pass_ = divide_up(plan_.examples, global_batch(plan_));
}

void Rounds::read(int64_t index, Round& round) const {
  round.ranges.clear();
  round.whole_pass = index >= part_rounds_;
  Range all;
  if (round.whole_pass) {
    const int64_t beyond = index - part_rounds_;
    round.pass = plan_.data.next_pass + beyond / rounds_per_pass_;
    round.index_in_part = beyond % rounds_per_pass_;
    round.rounds_in_part = rounds_per_pass_;
    all = cut(plan_, plan_.examples, round.index_in_part);
    append(round.ranges, cut(all, plan_.shard));
  } else {
    const auto after = std::upper_bound(parts_.begin(), parts_.end(), index,
                                        [](int64_t value, const Part& part) { return value < part.first_round; });
    const Part& part = *(after - 1);
    const PassPart& data = plan_.data.parts[static_cast<size_t>(after - 1 - parts_.begin())];
    round.pass = data.pass;
    round.index_in_part = index - part.first_round;
    round.rounds_in_part = (after == parts_.end() ? part_rounds_ : after->first_round) - part.first_round;
    all = cut(plan_, part.ends.back(), round.index_in_part);
    append_slice(data.ranges, part.ends, cut(all, plan_.shard), round.ranges);
  }
  const Range mine = cut(all, plan_.shard);
  round.global_count = all.size();
  round.first_row = mine.begin - all.begin;
  round.count = mine.size();
}

int64_t Rounds::before(int64_t pass) const {
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (plan_.data.parts[i].pass >= pass) return parts_[i].first_round;
  }
  const int64_t whole = std::max<int64_t>(pass - plan_.data.next_pass, 0);
  return whole > kMost / rounds_per_pass_ ? kMost : part_rounds_ + whole * rounds_per_pass_;
}

Remainder unapplied(const Plan& plan, std::span<const int64_t> done) {
  plan.check();
  if (done.size() != static_cast<size_t>(plan.shard.count) || *std::min_element(done.begin(), done.end()) < 0) {
    throw UsageError(fmt::format("a plan of {} members: {} counters, all 0 or more, are needed, got {}",
                                 plan.shard.count, plan.shard.count, fmt::join(done, ", ")));
  }
  Remainder left;
  int64_t first = 0;
  std::vector<int64_t> within;
  const auto add = [&](int64_t pass, std::span<const Range> ranges, int64_t size) {
    const int64_t rounds = divide_up(size, global_batch(plan));
    clamp_into(done, first, rounds, within);
    std::vector<Range> rest = left_of(plan, ranges, within);
    if (!rest.empty()) left.parts.push_back({pass, std::move(rest)});
    first += rounds;
  };
  for (const PassPart& part : plan.data.parts) add(part.pass, part.ranges, part.size());
  left.next_pass = plan.data.next_pass;
  const Range whole{0, plan.examples};
  const int64_t rounds = divide_up(plan.examples, global_batch(plan));
  // Passes that all members have finished need no check.
  const int64_t through = std::max<int64_t>((*std::min_element(done.begin(), done.end()) - first) / rounds, 0);
  left.next_pass += through;
  first += through * rounds;
  const int64_t furthest = *std::max_element(done.begin(), done.end());
  while (first < furthest) add(left.next_pass++, {&whole, 1}, plan.examples);
  return left;
}

void check_batch(int64_t examples, int64_t batch, int workers) {
  if (examples < 1) throw UsageError("the data set is empty: no batch can be made");
  if (batch < 1) throw UsageError(fmt::format("batch {}; at least 1 is allowed", batch));
  if (batch <= examples && batch * workers <= examples) return;
  const std::string times = workers == 1 ? "" : fmt::format(" times {} workers = {}", workers, batch * workers);
  throw UsageError(fmt::format("batch {}{} is larger than the data set of {} example{}", batch, times, examples,
                               examples == 1 ? "" : "s"));
}

}  // namespace lockstep::data
