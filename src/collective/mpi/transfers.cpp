#include "collective/mpi/transfers.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <set>
#include <thread>

namespace lockstep::collective::mpi {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kLargestMessage = size_t{1} << 30;  // a message's length is an int
constexpr int kTag = 0;  // messages between two ranks arrive in order, and both know the order
constexpr std::chrono::microseconds kYield{100};
constexpr std::chrono::microseconds kLongestSleep{200};
constexpr int kSleepFraction = 8;

}  // namespace

std::string error_text(int code) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) return fmt::format("error {}", code);
  return {text.data(), static_cast<size_t>(length)};
}

Transfers::Transfers(const GroupOptions& options, const std::atomic<bool>& give_up)
    : options_(options), give_up_(give_up) {}

template <class Bytes, class Start>
void Transfers::start(Bytes data, Peer peer, Start start_piece) {
  do {  // an empty message is sent, too: it shows that its sender has come this far
    const size_t size = std::min(data.size(), kLargestMessage);
    MPI_Request& request = requests_.emplace_back(MPI_REQUEST_NULL);
    peers_.push_back(peer);
    const int error = start_piece(data.data(), static_cast<int>(size), &request);
    if (error != MPI_SUCCESS) error_ = error;
    data = data.subspan(size);
  } while (!data.empty());
}

void Transfers::send(std::span<const std::byte> data, int to) {
  traffic_.sent += data.size();
  if (options_.meter != nullptr) options_.meter->sent(data.size());
  start(data, {to, false}, [&](const std::byte* begin, int size, MPI_Request* request) {
    return MPI_Isend(begin, size, MPI_BYTE, to, kTag, MPI_COMM_WORLD, request);
  });
}

void Transfers::receive(std::span<std::byte> data, int from) {
  traffic_.received += data.size();
  if (options_.meter != nullptr) options_.meter->received(data.size());
  start(data, {from, true}, [&](std::byte* begin, int size, MPI_Request* request) {
    return MPI_Irecv(begin, size, MPI_BYTE, from, kTag, MPI_COMM_WORLD, request);
  });
}

void Transfers::pause(std::chrono::nanoseconds waited) const {
  if (waited < options_.spin) return;
  waited -= options_.spin;
  if (waited < kYield) {
    sched_yield();
  } else {
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(waited / kSleepFraction, kLongestSleep));
  }
}

base::Status Transfers::wait() {
  const Clock::time_point begin = Clock::now();
  while (error_ == MPI_SUCCESS) {
    int done = 0;
    error_ = MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE);
    if (error_ != MPI_SUCCESS) break;
    if (done != 0) {
      requests_.clear();
      peers_.clear();
      return {};
    }
    if (give_up_.load(std::memory_order_relaxed)) return base::Failure{base::FailureKind::interrupted, "given up"};
    const Clock::duration waited = Clock::now() - begin;
    if (waited > options_.deadline) return overdue();
    pause(waited);
  }
  return base::Failure{base::FailureKind::io, error_text(error_)};
}

base::Failure Transfers::overdue() {
  std::set<int> silent;
  std::set<int> deaf;
  for (size_t i = 0; i < requests_.size(); ++i) {
    int done = 0;
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    if (MPI_Request_get_status(requests_[i], &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done != 0) continue;
    (peers_[i].sends_to_us ? silent : deaf).insert(peers_[i].rank);
  }
  const std::set<int>& culprits = silent.empty() ? deaf : silent;
  base::Failure failure{
      base::FailureKind::timeout,
      fmt::format("{} nothing for {:.3g} s", silent.empty() ? "received" : "sent", options_.deadline.count())};
  failure.ranks.assign(culprits.begin(), culprits.end());
  return failure;
}

}  // namespace lockstep::collective::mpi
