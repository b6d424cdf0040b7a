#include "ps/server_trace.h"

namespace lockstep::ps {
namespace {

using Clock = base::Tracer::Clock;

Clock::time_point at(double seconds) {
  return Clock::time_point(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)));
}

}  // namespace

ServerTrace::ServerTrace(base::Tracer* tracer, int server) : tracer_(tracer), server_(server) {
  if (tracer_ == nullptr) return;
  updates_ = &tracer_->track("updates");
  receive_ = tracer_->label({"receive", "server", {}, "push"});
  wait_ = tracer_->label({"wait for others", "server", {}, "push"});
  send_ = tracer_->label({"send", "server", {}, "push"});
  apply_ = tracer_->label({"apply", "server", {}, "step"});
  store_ = tracer_->label({"store", "server", {}, "step"});
  push_ = tracer_->label({"push", "exchange"});
  pull_ = tracer_->label({"pull", "exchange"});
}

base::TraceTrack* ServerTrace::borrow(const std::string& worker) {
  if (tracer_ == nullptr) return nullptr;
  const base::MutexLock lock(mutex_);
  std::vector<base::TraceTrack*>& idle = idle_[worker];
  if (idle.empty()) return &tracer_->track("pushes of " + worker);
  base::TraceTrack* const track = idle.back();
  idle.pop_back();
  return track;
}

void ServerTrace::give_back(const std::string& worker, base::TraceTrack* track) {
  if (track == nullptr) return;
  const base::MutexLock lock(mutex_);
  idle_[worker].push_back(track);
}

void ServerTrace::received(base::TraceTrack& track, uint64_t sequence, double begin, double end) const {
  track.span(receive_, at(begin), at(end), sequence);
}

void ServerTrace::waited(base::TraceTrack& track, uint64_t sequence, double begin, double end) const {
  track.span(wait_, at(begin), at(end), sequence);
}

void ServerTrace::sent(base::TraceTrack& track, const wire::Hello& to, uint64_t sequence, double begin,
                       double end) const {
  track.span(send_, at(begin), at(end), sequence);
  track.flow_begin(pull_, pull_flow(to.member(), to.incarnation(), sequence, server_), at(begin) + base::kInsideSpan);
}

void ServerTrace::applied(base::TraceTrack& track, const wire::Hello& from, uint64_t sequence, double begin,
                          double end) const {
  track.span(apply_, at(begin), at(end), sequence);
  track.flow_end(push_, push_flow(from.member(), from.incarnation(), sequence, server_), at(begin) + base::kInsideSpan);
}

void ServerTrace::updated(uint64_t version, double begin, double end, double stored) {
  if (updates_ == nullptr) return;
  updates_->span(apply_, at(begin), at(end - stored), version);
  updates_->span(store_, at(end - stored), at(end), version);
}

void ServerTrace::contributed(const wire::Hello& from, uint64_t sequence, double begin) {
  if (updates_ == nullptr) return;
  updates_->flow_end(push_, push_flow(from.member(), from.incarnation(), sequence, server_),
                     at(begin) + base::kInsideSpan);
}

int64_t ServerTrace::since_epoch(double when) const { return tracer_ == nullptr ? 0 : tracer_->since_epoch(at(when)); }

}  // namespace lockstep::ps
