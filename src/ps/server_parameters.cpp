// How a parameter server gets its parameters: from the chief, or from its folder after a restart.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/hash.h"
#include "lockstep/error.h"
#include "ps/server.h"

namespace lockstep::ps {
namespace {

constexpr std::chrono::seconds kReleased{2};  ///< for streams that were cut to release the parameters that they sent
constexpr size_t kSmall = size_t{1} << 20;    ///< parameters of a version that a hand makes: a millisecond or so

size_t count_of(const std::vector<program::ParameterRange>& ranges) {
  size_t count = 0;
  for (const program::ParameterRange& range : ranges) count += range.count;
  return count;
}

/// Returns the identity of a state file: it belongs to one job's parameters.
uint64_t identity_of(const wire::JobConfig& job) {
  uint64_t hash = base::hashed(base::kDigestStart, job.job());
  const auto add = [&hash](uint64_t value) { hash = base::hashed(hash, value); };
  add(job.parameters());
  add(job.optimizer().method());
  for (const wire::Range& range : job.ranges()) {
    add(range.offset());
    add(range.count());
  }
  return hash;
}

}  // namespace

bool has_state(const std::string& folder) {
  std::error_code ignored;
  return std::filesystem::exists(folder + "/state", ignored) && std::filesystem::exists(folder + "/job", ignored);
}

void Server::adopt(const wire::JobConfig& config) {
  check(config);
  ParameterShardOptions shard;
  shard.optimizer = from_wire(config.optimizer()).optimizer;
  shard.parameters = count_of(ranges_of(config.ranges()));
  shard.durability = options_.durability;
  shard.file = state_file();
  shard.identity = identity_of(config);
  shard.ledger_bytes = kMostLedgerBytes;
  shard.threads = options_.threads;
  shard_ = std::make_shared<ParameterShard>(shard);
  makes_at_once_ = shard.parameters <= kSmall && options_.durability != Durability::machine && !options_.at_update;
}

/// Drops the state of a run that is resumed; the newest checkpoint replaces it.
void Server::drop_state(const std::string& why) {
  log("warning",
      fmt::format("ps:{} cannot resume from its state: {}; training resumes from a checkpoint", options_.index, why));
  std::filesystem::remove(state_file());
  std::filesystem::remove(job_file());
}

/// Takes over the state in the folder, if any, after a restart.
void Server::take_over_state() {
  const base::MutexLock lock(mutex_);
  if (options_.durability == Durability::checkpoint || !has_state(options_.folder)) return;
  wire::JobConfig job;
  const std::vector<uint8_t> bytes = base::read_file(job_file(), size_t{64} << 20);
  if (!job.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    throw DataError(job_file() + ": is not the description of a job");
  }
  if (job.job() != options_.job && options_.resumed) return drop_state("its settings differ");
  if (job.job() != options_.job) {
    throw UsageError(
        fmt::format("{}: the state in it belongs to other settings; give another --run-dir", options_.folder));
  }
  if (job.protocol() < kSameVersions && !job.sync() && job.servers() > 1) {
    const std::string why = "it was written by an earlier version of lockstep, whose servers could differ";
    if (options_.resumed) return drop_state(why);
    throw UsageError(fmt::format("{}: cannot resume from the state in it: {}; give --resume", options_.folder, why));
  }
  try {
    adopt(job);
  } catch (const DataError& error) {
    if (!options_.resumed) throw;
    return drop_state(error.what());
  }
  if (!shard_->initialised()) {
    shard_.reset();
    return;
  }
  const View view = shard_->current();
  wire::Ledger ledger;
  if (!ledger.ParseFromArray(view.ledger.data(), static_cast<int>(view.ledger.size()))) {
    throw DataError(state_file() + ": damaged ledger");
  }
  job_.adopt(job);
  job_.resume(ledger, view.version, now());
  log("info", fmt::format("ps:{} is back at step {} with all acknowledged updates", options_.index, view.version));
}

void Server::on_init(Session& session, const transport::Frame& frame) {
  if (kind_of(frame) == Kind::init_begin) return begin_init(session, parse<wire::JobConfig>(frame));
  if (kind_of(frame) == Kind::init_end) return end_init(session, frame);
  const base::MutexLock lock(mutex_);
  if (!coming_ || frame.header.extra >= coming_values_.size()) throw DataError("parameters that were not announced");
  // Values must come in order, so that none is missing at the end and memory grows only with data received.
  std::vector<float>& values = coming_values_[frame.header.extra];
  const size_t count = count_of(ranges_of(coming_->ranges()));
  const transport::Header& h = frame.header;
  if (h.offset != values.size() || h.count > count - values.size()) {
    throw DataError(fmt::format("first parameters {}+{} of {} are out of order: {} have arrived", h.offset, h.count,
                                count, values.size()));
  }
  check_elements(frame);
  values.resize(values.size() + h.count);
  take_elements(frame, values);
}

void Server::begin_init(const Session& session, const wire::JobConfig& job) {
  check(job);
  if (job.job() != session.hello.job() || job.members() != static_cast<int>(options_.spec.members().size()) ||
      job.servers() != static_cast<int>(options_.spec.ps.size())) {
    throw DataError(fmt::format("the job has {} members and {} servers; this cluster has {} and {}", job.members(),
                                job.servers(), options_.spec.members().size(), options_.spec.ps.size()));
  }
  const base::MutexLock lock(mutex_);
  coming_ = job;
  const int slots = optim::state_slots(from_wire(job.optimizer()).optimizer.method);
  coming_values_.assign(static_cast<size_t>(slots) + 1, {});
}

void Server::end_init(Session& session, const transport::Frame& frame) {
  const auto ledger = parse<wire::Ledger>(frame);
  const base::MutexLock lock(mutex_);
  if (!coming_) throw DataError("the end of parameters that were not announced");
  const auto initial =
      std::make_shared<Initial>(Initial{session.id, *std::exchange(coming_, std::nullopt), frame.header.version, ledger,
                                        std::exchange(coming_values_, {})});
  const size_t count = count_of(ranges_of(initial->job.ranges()));
  std::vector<std::vector<float>>& values = initial->values;
  const auto whole = [&](const std::vector<float>& array) { return array.size() == count; };
  const bool no_slots = std::all_of(values.begin() + 1, values.end(), [](const auto& array) { return array.empty(); });
  if (!whole(values.front()) || !(no_slots || std::all_of(values.begin(), values.end(), whole))) {
    throw DataError(fmt::format("received {} of {} first parameters", values.front().size(), count));
  }
  if (no_slots) values.resize(1);
  // The maker sets them, because that waits for streams that still send earlier parameters, which their hands must cut.
  struct Outcome {
    bool done = false;
    std::exception_ptr error;
  };
  const auto outcome = std::make_shared<Outcome>();
  tasks_.emplace_back([this, initial, outcome] {
    mutex_.assert_held();
    try {
      set_initial(*initial);
    } catch (const std::exception& error) {
      outcome->error = std::current_exception();
      if (ends_server(error)) {  // the chief may be gone by now
        if (!ended_) error_ = outcome->error;
        end({});
      }
    }
    outcome->done = true;
    wake_waiting();
  });
  to_make_.notify_one();
  wait_until(
      session, [outcome] { return outcome->done; },
      [&session, outcome] {
        if (outcome->error) std::rethrow_exception(outcome->error);
        static_cast<void>(session.stream.write(header(Kind::ok)));
      });
  go_on(session);
}

void Server::wait_until_released() {
  if (options_.durability == Durability::checkpoint) return;
  mutex_.unlock();
  std::exception_ptr error;
  try {
    static_cast<void>(base::LockFile::lock(state_file() + ".lock", kReleased));
  } catch (...) {
    error = std::current_exception();
  }
  mutex_.lock();
  if (error) std::rethrow_exception(error);
}

void Server::set_initial(const Initial& initial) {
  if (sessions_.count(initial.by) == 0) throw Error("this connection was dropped");
  const wire::JobConfig& job = initial.job;
  // Made before any state is dropped, because it throws for impossible data.
  std::unique_ptr<Coordinator> coordinator = job_.coordinator_for(job, initial.version, initial.ledger, now());
  // The previous state belongs to another generation: a new file keeps it from being mistaken for this one.
  job_.set_parameters(initial.by, job, initial.version, std::move(coordinator));
  carry_out(job_.orders());    // streams that still send earlier parameters hold the lock of the state's file
  applier_.wait_until_idle();  // an update of the earlier ones may be under way; the job will not count it
  shard_.reset();
  wait_until_released();
  std::error_code ignored;
  std::filesystem::remove(state_file(), ignored);
  base::write_whole_file(job_file(), job.SerializeAsString());
  adopt(job);
  std::vector<std::span<const float>> slots;
  slots.assign(initial.values.begin() + 1, initial.values.end());
  const std::string bytes = job_.ledger(now());
  shard_->initialise(initial.version, initial.values.front(), slots, std::as_bytes(std::span(bytes)));
  job_.parameters_set(now());
  make_some();
}

}  // namespace lockstep::ps
