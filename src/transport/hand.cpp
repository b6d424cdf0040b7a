#include "transport/hand.h"

#include <grpc/support/time.h>

#include <algorithm>
#include <utility>

#include "transport/server_stream.h"

namespace lockstep::transport {

Hand::Hand(std::function<void()> ring, std::chrono::microseconds spin)
    : ring_(std::move(ring)),
      spin_(spin),
      queue_(grpc_completion_queue_create_for_next(nullptr)),
      thread_([this] { run(); }) {}

Hand::~Hand() {
  grpc_completion_queue_shutdown(queue_);
  thread_.join();
  grpc_completion_queue_destroy(queue_);
}

void Hand::run() {
  for (;;) {
    grpc_event event{};
    if (spin_.count() > 0) {
      const auto until = std::chrono::steady_clock::now() + spin_;
      do event = grpc_completion_queue_next(queue_, gpr_inf_past(GPR_CLOCK_MONOTONIC), nullptr);
      while (event.type == GRPC_QUEUE_TIMEOUT && std::chrono::steady_clock::now() < until);
    }
    if (spin_.count() <= 0 || event.type == GRPC_QUEUE_TIMEOUT) {
      event = grpc_completion_queue_next(queue_, gpr_inf_future(GPR_CLOCK_MONOTONIC), nullptr);
    }
    if (event.type == GRPC_QUEUE_SHUTDOWN) return;
    static_cast<void>(started.load(std::memory_order_acquire));
    const auto* operation = static_cast<const CallStream::Operation*>(event.tag);
    auto* stream = static_cast<ServerStream*>(operation->stream);  // only servers' streams have hands
    if (stream->completed(operation->tag, event.success != 0)) ring_();
  }
}

Hand* least_busy(const Hands& hands) {
  const auto busy = [](const Hand& hand) {
    const int all = hand.streams;
    return std::pair(all - hand.light, all);
  };
  const auto least =
      std::min_element(hands.begin(), hands.end(), [&](const auto& a, const auto& b) { return busy(*a) < busy(*b); });
  return least == hands.end() ? nullptr : least->get();
}

}  // namespace lockstep::transport
