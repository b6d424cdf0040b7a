#include "allreduce/stragglers.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::allreduce {
namespace {

/// First steps of a group, which are not typical.
constexpr uint64_t kSkipped = 5;
/// Steps from which the usual time of an exchange is known.
constexpr uint64_t kUsual = 40;
constexpr double kNewShare = 0.1;
constexpr double kMostOfAverage = 3;
constexpr uint64_t kLongSteps = 20;
constexpr double kLongSeconds = 2;

/// Limits to become slow, and to stop being slow: a factor, and the difference as a share of the step.
struct Limits {
  double factor;
  double share;
};
constexpr Limits kMemberSlow = {1.5, 0.05};
constexpr Limits kMemberFast = {1.25, 0.025};
constexpr Limits kNetworkSlow = {2, 0.1};
constexpr Limits kNetworkFast = {1.5, 0.05};

bool beyond(const Limits& limits, double value, double usual, double step) {
  return value > limits.factor * usual && value - usual > limits.share * step;
}

std::string duration(double seconds) {
  return seconds >= 1 ? fmt::format("{:.3g} s", seconds) : fmt::format("{:.3g} ms", seconds * 1e3);
}

double ratio(double value, double usual) { return value / std::max(usual, 1e-9); }

std::string times(double factor) { return factor >= 100 ? "over 100 times" : fmt::format("{:.1f} times", factor); }

}  // namespace

void Stragglers::Average::add(double sample, double least) {
  const double limit = std::max(kMostOfAverage * value, least);
  const double counted = samples < kSkipped ? sample : std::min(sample, limit);
  ++samples;
  value += std::max(kNewShare, 1.0 / static_cast<double>(samples)) * (counted - value);
}

bool Stragglers::Watch::update(bool otherwise, uint64_t step, double now) {
  if (!otherwise) {
    held = 0;
    return false;
  }
  if (held++ == 0) {
    since_step = step;
    since = now;
  }
  if (held < kLongSteps || now - since < kLongSeconds) return false;
  on = !on;
  held = 0;
  return true;
}

Stragglers::Stragglers(std::vector<std::string> names) : names_(std::move(names)), totals_(names_.size()) {}

void Stragglers::restart(std::vector<int> members) {
  for (const Pace& pace : paces_) {
    if (pace.watch.on) episodes_[pace.watch.episode].over = true;
  }
  if (network_.on) episodes_[network_.episode].over = true;
  members_ = std::move(members);
  paces_.assign(members_.size(), {});
  sorted_.reserve(members_.size());
  paces_sorted_.reserve(members_.size());
  step_ = {};
  exchange_ = {};
  network_ = {};
  steps_ = 0;
}

std::vector<StragglerEvent> Stragglers::step(uint64_t step, double now, std::span<const MemberTimes> times) {
  std::vector<StragglerEvent> events;
  account(times);
  if (++steps_ <= kSkipped || members_.size() < 2) return events;
  average(times);
  paces_sorted_.clear();
  for (const Pace& pace : paces_) paces_sorted_.push_back(pace.own());
  std::sort(paces_sorted_.begin(), paces_sorted_.end());
  for (size_t rank = 0; rank < paces_.size(); ++rank) judge_member(rank, step, now, events);
  judge_network(step, now, events);
  return events;
}

void Stragglers::account(std::span<const MemberTimes> times) {
  size_t last = 0;
  for (size_t rank = 0; rank < times.size(); ++rank) {
    if (times[rank].load + times[rank].compute > times[last].load + times[last].compute) last = rank;
    Total& total = totals_[static_cast<size_t>(members_[rank])];
    ++total.steps;
    total.sum.load += times[rank].load;
    total.sum.compute += times[rank].compute;
    total.sum.wait += times[rank].wait;
  }
  if (!times.empty()) ++totals_[static_cast<size_t>(members_[last])].last;
}

void Stragglers::average(std::span<const MemberTimes> times) {
  double longest = 0;
  double exchange = times[0].wait;
  for (const MemberTimes& member : times) {
    longest = std::max(longest, member.load + member.compute);
    exchange = std::min(exchange, member.wait);
  }
  const double least = kNewShare * step_.value;
  step_.add(longest + exchange, 0);
  exchange_.add(exchange, least);
  if (steps_ <= kSkipped + kUsual) usual_exchange_ = exchange_.value;
  for (size_t rank = 0; rank < times.size(); ++rank) {
    paces_[rank].load.add(times[rank].load, least);
    paces_[rank].compute.add(times[rank].compute, least);
  }
}

template <class Value>
double Stragglers::median_of_others(size_t rank, const Value& value) {
  sorted_.clear();
  for (size_t other = 0; other < paces_.size(); ++other) {
    if (other != rank) sorted_.push_back(value(paces_[other]));
  }
  std::sort(sorted_.begin(), sorted_.end());
  const size_t half = sorted_.size() / 2;
  return sorted_.size() % 2 == 1 ? sorted_[half] : (sorted_[half - 1] + sorted_[half]) / 2;
}

/// The same for the sums of load and compute, from all of them in order.
double Stragglers::median_pace_of_others(size_t rank) const {
  const auto mine = std::lower_bound(paces_sorted_.begin(), paces_sorted_.end(), paces_[rank].own());
  const auto at = [&](size_t i) {
    return paces_sorted_[i < static_cast<size_t>(mine - paces_sorted_.begin()) ? i : i + 1];
  };
  const size_t others = paces_sorted_.size() - 1;
  return others % 2 == 1 ? at(others / 2) : (at(others / 2 - 1) + at(others / 2)) / 2;
}

void Stragglers::judge_member(size_t rank, uint64_t step, double now, std::vector<StragglerEvent>& events) {
  Pace& pace = paces_[rank];
  const double others = median_pace_of_others(rank);
  const bool otherwise = pace.watch.on ? !beyond(kMemberFast, pace.own(), others, step_.value)
                                       : beyond(kMemberSlow, pace.own(), others, step_.value);
  prolong(pace.watch, ratio(pace.own(), others), now);
  if (!pace.watch.update(otherwise, step, now)) return;
  const double load = median_of_others(rank, [](const Pace& other) { return other.load.value; });
  const double compute = median_of_others(rank, [](const Pace& other) { return other.compute.value; });
  Episode episode{members_[rank], Slowness::computing, 0, 0, 0, ratio(pace.own(), others), false};
  std::string how =
      fmt::format("it computes {} as long as the median of the others ({} a step, they {})",
                  times(ratio(pace.compute.value, compute)), duration(pace.compute.value), duration(compute));
  if (pace.load.value - load > pace.compute.value - compute) {
    episode.why = Slowness::loading;
    how = fmt::format("it loads data {} as long as the median of the others ({} a step, they {})",
                      times(ratio(pace.load.value, load)), duration(pace.load.value), duration(load));
  }
  turn(pace.watch, episode, how, now, events);
}

void Stragglers::judge_network(uint64_t step, double now, std::vector<StragglerEvent>& events) {
  if (steps_ <= kSkipped + kUsual) return;
  const double exchange = exchange_.value;
  const bool otherwise = network_.on ? !beyond(kNetworkFast, exchange, usual_exchange_, step_.value)
                                     : beyond(kNetworkSlow, exchange, usual_exchange_, step_.value);
  const double factor = ratio(exchange, usual_exchange_);
  prolong(network_, factor, now);
  if (!network_.update(otherwise, step, now)) return;
  const std::string how = fmt::format("the exchange takes {} its first time ({} a step, then {})", times(factor),
                                      duration(exchange), duration(usual_exchange_));
  turn(network_, {kNetwork, Slowness::network, 0, 0, 0, factor, false}, how, now, events);
}

void Stragglers::turn(Watch& watch, Episode episode, const std::string& how, double now,
                      std::vector<StragglerEvent>& events) {
  const bool network = episode.member == kNetwork;
  const std::string who = network ? "the network" : names_[static_cast<size_t>(episode.member)];
  if (watch.on) {
    episode.since_step = watch.since_step;
    episode.since = watch.since;
    episode.seconds = now - watch.since;
    watch.episode = episodes_.size();
    episodes_.push_back(episode);
    events.push_back({episode.member, episode.why, false,
                      fmt::format("{} is slow since step {}: {}", who, episode.since_step, how)});
    return;
  }
  Episode& ended = episodes_[watch.episode];
  ended.over = true;
  ended.seconds = watch.since - ended.since;
  events.push_back({ended.member, ended.why, true,
                    fmt::format("{} is as fast as {} again after {}", who, network ? "at first" : "the others",
                                duration(ended.seconds))});
}

void Stragglers::prolong(const Watch& watch, double factor, double now) {
  if (!watch.on) return;
  Episode& episode = episodes_[watch.episode];
  episode.seconds = now - episode.since;
  episode.factor = std::max(episode.factor, factor);
}

StragglerReport Stragglers::report() const {
  StragglerReport report;
  report.names = names_;
  report.episodes = episodes_;
  for (size_t member = 0; member < totals_.size(); ++member) {
    const Total& total = totals_[member];
    if (total.steps == 0) continue;
    const auto steps = static_cast<double>(total.steps);
    report.members.push_back({names_[member],
                              total.steps,
                              static_cast<double>(total.last) / steps,
                              {total.sum.load / steps, total.sum.compute / steps, total.sum.wait / steps}});
  }
  return report;
}

std::vector<std::string> StragglerReport::lines() const {
  std::vector<std::string> all;
  for (const Episode& episode : episodes) {
    const bool network = episode.member == kNetwork;
    const char* how = episode.why == Slowness::loading ? "loading data" : "computing";
    all.push_back(fmt::format(
        "{} was slow from step {} on for {}{}: {}",
        network ? "the network" : names[static_cast<size_t>(episode.member)], episode.since_step,
        duration(episode.seconds), episode.over ? "" : ", until the end",
        network ? fmt::format("an exchange took up to {} its first time", times(episode.factor))
                : fmt::format("{}, up to {} as long as the median of the others in all", how, times(episode.factor))));
  }
  if (all.empty()) return all;
  for (const MemberPace& member : members) {
    all.push_back(fmt::format("{}: the last in {:.0f} % of {} steps; on average {} for data, {} computing, {} waiting",
                              member.name, member.last_share * 100, member.steps, duration(member.mean.load),
                              duration(member.mean.compute), duration(member.mean.wait)));
  }
  return all;
}

}  // namespace lockstep::allreduce
