#include "collective/mpi/mpi_engine.h"

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <future>
#include <mutex>
#include <thread>

#include "collective/mpi/transfers.h"
#include "collective/sum.h"
#include "lockstep/error.h"

namespace lockstep::collective {
namespace {

using base::Failure;
using base::Status;
using mpi::Transfers;
using Bytes = std::span<std::byte>;

// Up to this size each member sends everything to all others: one transfer instead of two. Open MPI's shared memory
// passes messages below 4 kB on at once, and waits for the receiver with larger ones.
constexpr size_t kOneWay = 2048;
// Part of an all-reduce at a time, which bounds the scratch memory.
constexpr size_t kSegment = size_t{32} << 20;

/// Bounds of each rank's part; the sizes differ by at most one element.
class Parts {
 public:
  Parts(size_t elements, size_t bytes_each, int size)
      : elements_(elements), bytes_each_(bytes_each), size_(static_cast<size_t>(size)) {}

  [[nodiscard]] Bytes of(Bytes whole, int rank) const {
    return whole.subspan(begin(rank), begin(rank + 1) - begin(rank));
  }

 private:
  [[nodiscard]] size_t begin(int rank) const {
    const auto r = static_cast<size_t>(rank);
    return (elements_ / size_ * r + std::min(elements_ % size_, r)) * bytes_each_;
  }

  size_t elements_;
  size_t bytes_each_;
  size_t size_;
};

class MpiGroup final : public Collective {
 public:
  MpiGroup(int rank, int size, const GroupOptions& options) : rank_(rank), size_(size), transfers_(options, aborted_) {}
  ~MpiGroup() override;

  [[nodiscard]] std::string_view engine() const override { return "mpi"; }
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }

  Status all_reduce(void* data, size_t count, Element element) override;
  Status broadcast(Bytes data, int root) override;
  Status all_gather(std::span<const std::byte> mine, Bytes all) override;
  Status barrier() override;

  void abort(const std::string& why) override;
  [[nodiscard]] Traffic traffic() const override { return transfers_.traffic(); }

 private:
  Status reduce_one_way(Bytes data, Element element);
  Status reduce_in_parts(Bytes data, Element element);
  /// Sums blocks that lie in scratch_ by rank into `own`, with this rank's own data in place of its block.
  void add_in_order(Bytes own, Element element);
  Bytes block(int rank, size_t bytes) { return {scratch_.get() + static_cast<size_t>(rank) * bytes, bytes}; }
  void reserve(size_t bytes);
  /// Sends each member's part of the data to all others except `has_all`, which has everything.
  void spread(Bytes data, const Parts& parts, int has_all = -1);
  /// Calls it with the others, nearest first, so that not all start with the same one.
  template <class Call>
  void with_others(Call call);
  Status wait(const std::string& what);
  Status refuse() const;

  int rank_;
  int size_;
  std::atomic<bool> aborted_{false};
  mutable std::mutex mutex_;
  std::string why_;  ///< guarded by mutex_; set before aborted_
  bool failed_ = false;
  std::unique_ptr<std::byte[]> scratch_;
  size_t scratch_bytes_ = 0;
  Transfers transfers_;
};

MpiGroup::~MpiGroup() {
  // MPI_Finalize waits for all ranks without a limit, so it is called only if all are known to have come.
  if (!failed_ && !aborted_ && barrier().ok()) MPI_Finalize();
}

template <class Call>
void MpiGroup::with_others(Call call) {
  for (int step = 1; step < size_; ++step) call((rank_ + step) % size_);
}

void MpiGroup::reserve(size_t bytes) {
  if (scratch_bytes_ >= bytes) return;
  scratch_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
  scratch_bytes_ = bytes;
}

Status MpiGroup::refuse() const {
  const std::lock_guard lock(mutex_);
  return Failure{base::FailureKind::gone, why_.empty() ? "the group of MPI ranks has failed before" : why_};
}

Status MpiGroup::wait(const std::string& what) {
  Status done = transfers_.wait();
  if (done) return done;
  failed_ = true;
  // MPI or another rank may still write to the memory of operations in flight.
  static_cast<void>(scratch_.release());
  if (aborted_) return refuse();
  return Failure(done.failure()).because(fmt::format("{} between {} MPI ranks", what, size_));
}

void MpiGroup::add_in_order(Bytes own, Element element) {
  const size_t bytes = own.size();
  const auto of = [&](int rank) { return rank == rank_ ? own.data() : block(rank, bytes).data(); };
  const std::byte* sum = of(0);
  for (int rank = 1; rank < size_; ++rank) {
    // A block that has been added, or is added now, holds the intermediate sum; the last sum goes to its destination.
    std::byte* const to = rank == size_ - 1 || rank_ == 0 ? own.data() : block(0, bytes).data();
    add(element, sum, of(rank), to, bytes / bytes_of(element));
    sum = to;
  }
}

Status MpiGroup::reduce_one_way(Bytes data, Element element) {
  reserve(data.size() * static_cast<size_t>(size_));
  with_others([&](int other) {
    transfers_.receive(block(other, data.size()), other);
    transfers_.send(data, other);
  });
  Status done = wait("all-reduce");
  if (done) add_in_order(data, element);
  return done;
}

Status MpiGroup::reduce_in_parts(Bytes data, Element element) {
  const size_t each = bytes_of(element);
  const Parts parts(data.size() / each, each, size_);
  const Bytes own = parts.of(data, rank_);
  reserve(own.size() * static_cast<size_t>(size_));
  with_others([&](int other) {
    transfers_.receive(block(other, own.size()), other);
    transfers_.send(parts.of(data, other), other);
  });
  Status done = wait("all-reduce");
  if (!done) return done;
  add_in_order(own, element);
  spread(data, parts);
  return wait("all-reduce");
}

void MpiGroup::spread(Bytes data, const Parts& parts, int has_all) {
  with_others([&](int other) {
    if (rank_ != has_all) transfers_.receive(parts.of(data, other), other);
    if (other != has_all) transfers_.send(parts.of(data, rank_), other);
  });
}

Status MpiGroup::all_reduce(void* data, size_t count, Element element) {
  if (failed_ || aborted_) return refuse();
  if (size_ == 1) return {};
  Bytes rest{static_cast<std::byte*>(data), count * bytes_of(element)};
  while (!rest.empty()) {
    const Bytes segment = rest.first(std::min(rest.size(), kSegment));
    Status done = segment.size() <= kOneWay ? reduce_one_way(segment, element) : reduce_in_parts(segment, element);
    if (!done) return done;
    rest = rest.subspan(segment.size());
  }
  return {};
}

Status MpiGroup::broadcast(Bytes data, int root) {
  if (failed_ || aborted_) return refuse();
  if (size_ == 1) return {};
  const std::string what = fmt::format("broadcast from rank {}", root);
  const Parts parts(data.size(), 1, size_);
  if (rank_ != root) {
    transfers_.receive(data.size() <= kOneWay ? data : parts.of(data, rank_), root);
  } else {
    with_others([&](int other) { transfers_.send(data.size() <= kOneWay ? data : parts.of(data, other), other); });
  }
  Status done = wait(what);
  if (!done || data.size() <= kOneWay) return done;
  spread(data, parts, root);
  return wait(what);
}

Status MpiGroup::all_gather(std::span<const std::byte> mine, Bytes all) {
  if (failed_ || aborted_) return refuse();
  const auto part = [&](int rank) { return all.subspan(static_cast<size_t>(rank) * mine.size(), mine.size()); };
  if (!mine.empty()) std::memmove(part(rank_).data(), mine.data(), mine.size());
  with_others([&](int other) {
    transfers_.receive(part(other), other);
    transfers_.send(mine, other);
  });
  return wait("all-gather");
}

Status MpiGroup::barrier() {
  if (failed_ || aborted_) return refuse();
  with_others([&](int other) {
    transfers_.receive({}, other);
    transfers_.send({}, other);
  });
  return wait("barrier");
}

void MpiGroup::abort(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (why_.empty()) why_ = why;
  aborted_ = true;
}

/// MPI_Init waits for all ranks without a deadline, so it runs on a thread that is abandoned if need be.
void initialise(int expected, Seconds deadline) {
  auto done = std::make_shared<std::promise<int>>();
  std::future<int> result = done->get_future();
  std::thread([done] {
    int provided = MPI_THREAD_SINGLE;
    const int error = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
    done->set_value(error == MPI_SUCCESS && provided < MPI_THREAD_SERIALIZED ? MPI_ERR_UNSUPPORTED_OPERATION : error);
  }).detach();
  if (result.wait_for(deadline) != std::future_status::ready) {
    throw IoError(fmt::format("MPI: not all of {} ranks have started within {:.3g} s", expected, deadline.count()));
  }
  if (const int error = result.get(); error != MPI_SUCCESS) throw IoError("MPI: " + mpi::error_text(error));
}

void require(int error) {
  if (error != MPI_SUCCESS) throw IoError("MPI: " + mpi::error_text(error));
}

bool has_launcher() {
  // no thread sets them
  return std::getenv("OMPI_COMM_WORLD_RANK") != nullptr || std::getenv("PMIX_RANK") != nullptr;
}

}  // namespace

std::unique_ptr<Collective> make_mpi_group(int expected, const GroupOptions& options) {
  if (!has_launcher() && expected != 1) {
    throw UsageError(
        fmt::format("--collective: mpi is for the ranks of mpirun, or srun with --mpi=pmix, and this "
                    "process is not one; start {} of them, or use gloo",
                    expected));
  }
  int initialised = 0;
  MPI_Initialized(&initialised);
  if (initialised != 0) throw UsageError("this process has already made its group of MPI ranks; one is allowed");
  initialise(expected, options.deadline);
  int rank = 0;
  int size = 0;
  require(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  require(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  require(MPI_Comm_size(MPI_COMM_WORLD, &size));
  if (size != expected) {
    throw UsageError(fmt::format("--collective: MPI has {} ranks and the cluster {} workers", size, expected));
  }
  return std::make_unique<MpiGroup>(rank, size, options);
}

}  // namespace lockstep::collective
