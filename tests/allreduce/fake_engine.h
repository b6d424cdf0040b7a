// An engine of collective operations within one process, for members that are objects of one test; they find each other
// by made-up addresses. It can only sum floats and wait at a barrier; an abort ends both.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "collective/collective.h"

namespace lockstep::allreduce::testing {

/// Meeting place for the halves of groups.
class FakeEngine {
 public:
  struct Meeting {
    std::mutex mutex;
    std::condition_variable changed;
    std::set<int> came;
    int size = 0;
    uint64_t round = 0;
    int waiting = 0;
    std::vector<float> sum;
    std::vector<float> result;
    bool over = false;
  };

  std::unique_ptr<collective::Joining> join(int rank, int size) { return std::make_unique<Half>(*this, rank, size); }

 private:
  class Member final : public collective::Collective {
   public:
    Member(std::shared_ptr<Meeting> meeting, int rank) : meeting_(std::move(meeting)), rank_(rank) {}
    ~Member() override { abort("its member is gone"); }
    [[nodiscard]] std::string_view engine() const override { return "fake"; }
    [[nodiscard]] int rank() const override { return rank_; }
    [[nodiscard]] int size() const override { return meeting_->size; }
    [[nodiscard]] collective::Traffic traffic() const override { return {}; }
    base::Status broadcast(std::span<std::byte> /*data*/, int /*root*/) override { return barrier(); }
    base::Status all_gather(std::span<const std::byte> /*mine*/, std::span<std::byte> /*all*/) override {
      return base::Failure{base::FailureKind::unreachable, "not here"};
    }
    base::Status barrier() override { return all_reduce(nullptr, 0, collective::Element::float32); }
    base::Status all_reduce(void* data, size_t count, collective::Element /*element*/) override {
      std::unique_lock lock(meeting_->mutex);
      auto* values = static_cast<float*>(data);
      if (meeting_->waiting++ == 0) meeting_->sum.assign(count, 0);
      for (size_t i = 0; i < count; ++i) meeting_->sum[i] += values[i];
      const uint64_t round = meeting_->round;
      if (meeting_->waiting == meeting_->size) {
        meeting_->waiting = 0;
        ++meeting_->round;
        meeting_->result = meeting_->sum;
        meeting_->changed.notify_all();
      }
      meeting_->changed.wait(lock, [&] { return meeting_->round > round || meeting_->over || !why_.empty(); });
      if (meeting_->round == round) {
        return base::Failure{base::FailureKind::gone, why_.empty() ? "another member is gone" : why_};
      }
      std::copy_n(meeting_->result.begin(), count, values);
      return {};
    }
    using Collective::all_reduce;
    void abort(const std::string& why) override {
      const std::lock_guard lock(meeting_->mutex);
      if (why_.empty()) why_ = why;
      meeting_->over = true;
      meeting_->changed.notify_all();
    }

   private:
    std::shared_ptr<Meeting> meeting_;
    int rank_;
    std::string why_;
  };

  class Half final : public collective::Joining {
   public:
    Half(FakeEngine& engine, int rank, int size) : engine_(engine), rank_(rank), size_(size) {
      const std::lock_guard lock(engine_.mutex_);
      address_ = "half " + std::to_string(++engine_.halves_);
    }
    [[nodiscard]] std::string address() const override { return address_; }
    base::Result<std::unique_ptr<collective::Collective>> connect(const std::vector<std::string>& addresses,
                                                                  const std::function<bool()>& give_up) override {
      std::shared_ptr<Meeting> meeting;
      {
        const std::lock_guard lock(engine_.mutex_);
        auto& found = engine_.meetings_[addresses];
        if (!found) found = std::make_shared<Meeting>();
        meeting = found;
      }
      std::unique_lock lock(meeting->mutex);
      meeting->size = size_;
      meeting->came.insert(rank_);
      meeting->changed.notify_all();
      while (static_cast<int>(meeting->came.size()) < size_) {
        meeting->changed.wait_for(lock, std::chrono::milliseconds(20));
        lock.unlock();
        const bool stop = give_up();
        lock.lock();
        if (stop) return base::Failure{base::FailureKind::interrupted, "connecting was given up"};
      }
      return std::unique_ptr<collective::Collective>(std::make_unique<Member>(meeting, rank_));
    }

   private:
    FakeEngine& engine_;
    int rank_;
    int size_;
    std::string address_;
  };

  std::mutex mutex_;
  int halves_ = 0;
  std::map<std::vector<std::string>, std::shared_ptr<Meeting>> meetings_;
};

}  // namespace lockstep::allreduce::testing
