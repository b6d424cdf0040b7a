// A parameter server's lock-free updates (Hogwild). An update is counted with the lock held, and applied after that
// with the lock released, by the handler of its worker: whether its worker leaves, comes back or is replaced meanwhile,
// it counts once. A process killed in between keeps a part of it.
#include <algorithm>

#include "ps/server.h"

namespace lockstep::ps {

void Server::book_in_place(const Decision& decision, const optim::Update& update, bool is_here) {
  if (!is_here) return;
  const int member = decision.contributors.front().member;
  Gradient& gradient = gradients_.at(member);
  gradient.booked = update;
  if (has_handler(member, gradient)) return;
  shard_->apply_in_place(*gradient.values, update);
  gradients_.erase(member);
}

double Server::apply_booked(const SessionPtr& session) {
  const auto found = gradients_.find(session->hello.member());
  const bool booked = found != gradients_.end() && found->second.values == session->staging && found->second.booked;
  if (!booked) return 0;
  const Gradient gradient = found->second;
  found->second.booked.reset();
  const std::shared_ptr<ParameterShard> shard = shard_;
  ++applying_;
  mutex_.unlock();
  const double began = now();
  std::exception_ptr error;
  try {
    shard->apply_in_place(*gradient.values, *gradient.booked);
  } catch (...) {
    error = std::current_exception();
  }
  const double ended = now();
  times_.add(Stage::apply, ended - began);
  mutex_.lock();
  --applying_;
  changed_.notify_all();
  if (error) std::rethrow_exception(error);
  if (session->traced) trace_.applied(*session->trace, session->hello, session->coming, began, ended);
  return ended - began;
}

bool Server::is_quiet() const {
  return applying_ == 0 && std::none_of(gradients_.begin(), gradients_.end(),
                                        [](const auto& gradient) { return gradient.second.booked.has_value(); });
}

}  // namespace lockstep::ps
