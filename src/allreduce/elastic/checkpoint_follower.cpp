#include "allreduce/elastic/checkpoint_follower.h"

#include <fmt/format.h>

#include "allreduce/elastic/visit.h"
#include "lockstep/error.h"
#include "wire/frames.h"
#include "wire/liveness.h"

namespace lockstep::allreduce {
namespace {

using elastic::Kind;
using elastic::kind_of;
using std::chrono::milliseconds;

constexpr double kWorthALine = 5;
constexpr double kAlone = 2;  ///< seconds without any member before signs of the end are believed
constexpr double kGone = 60;  ///< seconds without any member, after one was reached, until all count as gone

}  // namespace

class CheckpointFollower::Impl {
 public:
  explicit Impl(const ElasticOptions& options)
      : options_(options), members_(options.spec.members()), watchdog_(options.interrupt) {}

  std::optional<uint64_t> next(uint64_t after, std::span<float> parameters);
  void stop(train::StopReason reason);

 private:
  enum class Answer : uint8_t { parameters, none, ended, failed };
  /// Opens a stream to a member, trying the supposed leader first.
  bool reach();
  Answer ask(uint64_t after, std::span<float> parameters, uint64_t& step);
  Answer take(transport::Frame first, std::span<float> parameters, uint64_t& step);
  /// Sends the stop once on every stream, because a leader that died may not have passed it on. Returns false if the
  /// stream is broken.
  bool say_stop();
  void drop(const std::string& why);
  void try_another();

  ElasticOptions options_;
  std::vector<cluster::Task> members_;
  elastic::Watchdog watchdog_;
  std::unique_ptr<transport::Stream> stream_;
  int member_ = 0;  ///< member of the stream, or the next to try
  bool met_ = false;
  train::StopReason stop_ = train::StopReason::none;
  bool stop_said_ = false;  ///< sent on this stream
  std::string why_ = "no member was asked";
};

void CheckpointFollower::Impl::drop(const std::string& why) {
  watchdog_.watch(nullptr);
  stream_.reset();
  why_ = fmt::format("{} at {}: {}", members_[static_cast<size_t>(member_)].str(),
                     options_.spec.address(members_[static_cast<size_t>(member_)]), why);
}

void CheckpointFollower::Impl::try_another() {
  stream_.reset();
  member_ = (member_ + 1) % static_cast<int>(members_.size());
}

bool CheckpointFollower::Impl::reach() {
  if (stream_) return true;
  std::string run;
  base::Result<std::unique_ptr<transport::Stream>> made =
      elastic::visit(options_, member_, Kind::visit, watchdog_, run);
  if (!made) {
    drop(made.failure().message());
    try_another();
    return false;
  }
  stream_ = std::move(made.value());
  stop_said_ = false;
  met_ = true;
  return true;
}

std::optional<uint64_t> CheckpointFollower::Impl::next(uint64_t after, std::span<float> parameters) {
  auto heard = wire::Clock::now();
  bool told = false;
  int tries = 0;
  while (!watchdog_.interrupted()) {
    uint64_t step = 0;
    const Answer answer = reach() ? ask(after, parameters, step) : Answer::failed;
    if (answer == Answer::parameters) return step;
    if (answer == Answer::ended) return std::nullopt;
    if (answer == Answer::none) {
      heard = wire::Clock::now();
      told = false;
      tries = 0;
      continue;
    }
    const double silent = std::chrono::duration<double>(wire::Clock::now() - heard).count();
    if (silent > kAlone && options_.look_for_ending && options_.look_for_ending()) return std::nullopt;
    if (silent > (met_ ? std::min(kGone, options_.patience) : options_.patience)) {
      if (met_) return std::nullopt;  // they ended while no evaluator listened
      throw Error(fmt::format("{}: no member reached for {:.0f} s; the last: {}", options_.task.str(), silent, why_));
    }
    if (silent > kWorthALine && !told && options_.log) {
      options_.log("warning", fmt::format("no member reached for {:.0f} s: {}", silent, why_));
      told = true;
    }
    watchdog_.pause(std::min(milliseconds(20) * (1 << std::min(tries++, 5)), milliseconds(500)));
  }
  return std::nullopt;
}

CheckpointFollower::Impl::Answer CheckpointFollower::Impl::ask(uint64_t after, std::span<float> parameters,
                                                               uint64_t& step) {
  watchdog_.watch(stream_.get());
  transport::Header request = elastic::header(Kind::follow);
  request.version = after;
  if (!say_stop() || !stream_->write(request)) {
    drop("connection closed");
    return Answer::failed;
  }
  base::Result<transport::Frame> answer = stream_->read();
  if (!answer) {
    drop(answer.failure().message());
    return Answer::failed;
  }
  switch (kind_of(answer.value())) {
    case Kind::parameters:
      return take(std::move(answer.value()), parameters, step);
    case Kind::ok:
      return Answer::none;
    case Kind::ended:
      watchdog_.watch(nullptr);
      return Answer::ended;
    case Kind::elsewhere: {
      const uint64_t leader = answer.value().header.extra;
      drop("another member leads");
      if (leader >= 1 && leader <= members_.size() && static_cast<int>(leader) - 1 != member_) {
        member_ = static_cast<int>(leader) - 1;
      } else {
        try_another();
      }
      watchdog_.pause(milliseconds(100));
      return Answer::none;
    }
    default:
      drop("invalid answer");
      return Answer::failed;
  }
}

CheckpointFollower::Impl::Answer CheckpointFollower::Impl::take(transport::Frame frame, std::span<float> parameters,
                                                                uint64_t& step) {
  for (;;) {
    if (kind_of(frame) != Kind::parameters) {
      drop("invalid answer instead of parameters");
      return Answer::failed;
    }
    if (frame.header.extra != parameters.size()) {
      throw DataError(fmt::format("{} sent {} parameters; this model has {}",
                                  members_[static_cast<size_t>(member_)].str(), frame.header.extra, parameters.size()));
    }
    wire::take_elements(frame, parameters);
    step = frame.header.version;
    if ((frame.header.flags & wire::kLast) != 0) break;
    watchdog_.watch(stream_.get());
    base::Result<transport::Frame> more = stream_->read();
    if (!more) {
      drop(more.failure().message());
      return Answer::failed;
    }
    frame = std::move(more.value());
  }
  watchdog_.watch(nullptr);
  return Answer::parameters;
}

bool CheckpointFollower::Impl::say_stop() {
  if (stop_ == train::StopReason::none || stop_said_) return true;
  transport::Header order = elastic::header(Kind::stop);
  order.extra = static_cast<uint64_t>(stop_);
  stop_said_ = stream_->write(order) && stream_->read();
  return stop_said_;
}

void CheckpointFollower::Impl::stop(train::StopReason reason) {
  stop_ = reason;
  stop_said_ = false;
  for (size_t tries = 0; tries < 2 * members_.size() && !watchdog_.interrupted(); ++tries) {
    if (!reach()) continue;
    watchdog_.watch(stream_.get());
    if (say_stop()) return watchdog_.watch(nullptr);
    drop("connection closed");
  }
}

CheckpointFollower::CheckpointFollower(const ElasticOptions& options) : impl_(std::make_unique<Impl>(options)) {}
CheckpointFollower::~CheckpointFollower() = default;
std::optional<uint64_t> CheckpointFollower::next(uint64_t after, std::span<float> parameters) {
  return impl_->next(after, parameters);
}
void CheckpointFollower::stop(train::StopReason reason) { impl_->stop(reason); }

}  // namespace lockstep::allreduce
