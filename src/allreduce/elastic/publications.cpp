#include "allreduce/elastic/publications.h"

#include <algorithm>
#include <chrono>

#include "allreduce/elastic/messages.h"
#include "lockstep/error.h"
#include "wire/frames.h"

namespace lockstep::allreduce::elastic {
namespace {

constexpr size_t kMostKept = 16;
constexpr size_t kMostKeptBytes = size_t{512} << 20;
constexpr std::chrono::milliseconds kLookAtPeers{200};
/// Time after this member's start in which an evaluator may still connect.
constexpr std::chrono::seconds kEvaluatorMayCome{10};
/// Time after which an answer is sent anyway, to show that this member lives.
constexpr std::chrono::milliseconds kLongest{2000};

base::Status send_parameters(transport::Stream& stream, uint64_t step,
                             const std::shared_ptr<const std::vector<float>>& parameters) {
  transport::Header first = header(Kind::parameters);
  first.version = step;
  first.extra = parameters->size();
  const wire::Refusal none;  // the last frame needs a message, even an empty one
  return wire::send_elements(stream, first, *parameters, transport::Element::kFloat32, parameters, &none);
}

}  // namespace

void Publications::publish(uint64_t step, std::span<const float> parameters) {
  const base::MutexLock lock(mutex_);
  if (!(came_ || expected_) || (!published_.empty() && published_.back().step >= step)) return;
  published_.push_back({step, std::make_shared<const std::vector<float>>(parameters.begin(), parameters.end())});
  const size_t most = std::min(kMostKept, kMostKeptBytes / std::max<size_t>(parameters.size_bytes(), 1));
  while (published_.size() > std::max<size_t>(most, 1)) published_.pop_front();
  changed_.notify_all();
}

bool Publications::awaited() const {
  const base::MutexLock lock(mutex_);
  return evaluators_ > told_end_;
}

bool Publications::expected() const {
  const base::MutexLock lock(mutex_);
  return expected_ && !heard_end_ && std::chrono::steady_clock::now() - made_ < kEvaluatorMayCome;
}

void Publications::stop() {
  const base::MutexLock lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
}

void Publications::serve(transport::Stream& stream, const std::function<Place()>& place) {
  {
    const base::MutexLock lock(mutex_);
    ++evaluators_;
    came_ = true;
  }
  bool told = false;
  for (;;) {
    const base::Result<transport::Frame> frame = stream.read();
    if (!frame) break;
    base::Result<Told> answered = Told::news;
    if (kind_of(frame.value()) == Kind::follow) {
      answered = answer_follow(stream, frame.value().header.version, place);
    } else if (kind_of(frame.value()) == Kind::stop) {
      const uint64_t reason = frame.value().header.extra;
      if (reason <= static_cast<uint64_t>(train::StopReason::error))
        stop_reason_ = static_cast<train::StopReason>(reason);
      if (!stream.write(header(Kind::ok))) break;
    } else {
      break;
    }
    if (!answered) break;
    if (!told && answered.value() == Told::end_of_training) {
      told = true;
      const base::MutexLock lock(mutex_);
      ++told_end_;
      heard_end_ = true;
    }
  }
  const base::MutexLock lock(mutex_);
  --evaluators_;
  if (told) --told_end_;
}

base::Result<Publications::Told> Publications::answer_follow(transport::Stream& stream, uint64_t after,
                                                             const std::function<Place()>& place) {
  const auto until = std::chrono::steady_clock::now() + kLongest;
  for (;;) {
    const Place now = place();
    const bool late = std::chrono::steady_clock::now() > until;
    Published found;
    {
      const base::MutexLock lock(mutex_);
      const auto newer = std::find_if(published_.begin(), published_.end(),
                                      [&](const Published& published) { return published.step > after; });
      if (newer != published_.end()) {
        found = *newer;
      } else if (now.here && !now.ended && !late && !stopping_) {
        changed_.wait_for(mutex_, kLookAtPeers);
        continue;
      }
    }
    transport::Header elsewhere = header(Kind::elsewhere);
    elsewhere.extra = static_cast<uint64_t>(now.leader + 1);
    const base::Status sent = found.parameters ? send_parameters(stream, found.step, found.parameters)
                              : now.ended      ? stream.write(header(Kind::ended))
                                               : stream.write(now.here ? header(Kind::ok) : elsewhere);
    if (!sent) return sent.failure();
    return !found.parameters && now.ended ? Told::end_of_training : Told::news;
  }
}

}  // namespace lockstep::allreduce::elastic
