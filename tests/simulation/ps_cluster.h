// A simulated parameter-server cluster: what its processes share, the frames between them, and the truth that their
// states are compared with after every event.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ps/job.h"
#include "ps/parameter_shard.h"
#include "simulation/world.h"

namespace lockstep::simulation {

/// Faults of the code that can be put back, to see that they are found.
enum class OldFault : uint8_t {
  none,
  waits_for_room_locked,  ///< a server without room for a copy of the parameters holds its lock while it waits
  followers_do_not_ask,   ///< async: another server applies a push as it comes, whether ps:0 counts it or not
  silence_unnoticed,      ///< another server does not notice that ps:0 is silent
  books_after_applying,   ///< lock-free: an update is counted after it was applied, without another look
  two_with_one_name       ///< a second process with the name of a role is let in
};

struct PsOptions {
  int workers = 2;
  int servers = 2;
  bool evaluator = false;
  bool lock_free = false;
  bool goal = false;   ///< the evaluator ends training at a version
  bool twin = false;   ///< somebody starts a second worker:1
  bool exact = false;  ///< no worker fails: every update must have the gradients of all of them
  ps::Durability durability = ps::Durability::process;
  ps::CoordinatorOptions rules;
  double batch_seconds = 0.1;
  double read_seconds = 0;         ///< longest time in which parameters are sent
  uint64_t checkpoint_every = 10;  ///< versions
  OldFault fault = OldFault::none;
};

/// A frame, as in ps/messages.h; a push and an answer are one.
struct Frame {
  explicit Frame(ps::Kind k) : kind(k) {}
  ps::Kind kind;
  bool control = false;
  bool last = false;  ///< flag kLast or kExact
  uint64_t version = 0;
  uint64_t sequence = 0;
  uint64_t extra = 0;
  uint64_t digest = 0;  ///< of the parameters or state in it
  std::shared_ptr<const google::protobuf::MessageLite> message;
  std::string text;
};
using FramePtr = std::shared_ptr<const Frame>;
template <class T>
const T& message_of(const Frame& frame) {
  return static_cast<const T&>(*frame.message);
}
std::string describe(const Frame& frame);

/// What happened, as somebody sees it who sees everything. Fails the world at the first contradiction.
class Truth {
 public:
  Truth(World& world, const PsOptions& options) : world_(world), options_(options) {}

  /// A state from which training goes on: a generation of the parameters and a version.
  struct Place {
    uint64_t generation = 0;
    uint64_t version = 0;
  };
  /// A server was given the parameters of `from`.
  void set(int server, uint64_t generation, const Place& from);
  /// A server has stored a version. `parts`: the data in it, from ps:0.
  void stored(int server, const ps::Update& update, const std::vector<ps::Contributed>* parts, uint64_t digest);
  /// A server is back with this state.
  void resumed(int server, const Place& place);
  /// A server has whole pushes of a worker; `lost`: it has died since.
  void received(int server, const ps::PushName& push) { here_[server].insert({push.incarnation, push.sequence}); }
  void died(int server);
  /// A worker was told that its push counts.
  void acknowledged(int server, const Place& place);
  /// A checkpoint: all parts must be the same state.
  void checkpoint(const Place& place, const std::vector<uint64_t>& digests);
  void ended(int server, const Place& place) { ends_[server] = place; }
  /// A worker has ended in order.
  void worker_left() { all_train_ = false; }
  /// All processes have ended.
  void finish();
  [[nodiscard]] uint64_t digest_at(const Place& place) const;
  [[nodiscard]] static uint64_t digest_after(uint64_t digest, const ps::Update& update);
  [[nodiscard]] uint64_t newest() const { return newest_; }

 private:
  struct Made {
    std::vector<ps::Contributor> contributors;
    std::vector<data::PassPart> parts;
    uint64_t digest = 0;
  };
  struct Line {
    std::map<uint64_t, Made> made;                  ///< by version
    std::set<std::pair<int64_t, int64_t>> applied;  ///< passes and positions of the data
    uint64_t first = 0;
    std::set<int> given_to;  ///< servers
    std::set<int> lossy;     ///< servers that lack a gradient that was lost
  };
  void enter(Line& line, const std::vector<data::PassPart>& parts);

  World& world_;
  const PsOptions& options_;
  std::map<uint64_t, Line> lines_;  ///< by generation
  std::map<int, std::set<std::pair<uint64_t, uint64_t>>> here_;
  std::map<int, std::set<std::pair<uint64_t, uint64_t>>> lost_;
  std::map<std::pair<int, uint64_t>, uint64_t> acknowledged_;  ///< by server and generation
  std::map<int, Place> holds_;
  std::map<int, Place> ends_;
  bool all_train_ = true;
  uint64_t newest_ = 0;
};

/// The chief's newest checkpoint. It survives everything: it is written whole and synced, where every chief finds it.
struct PsCheckpoint {
  Truth::Place place;
  uint64_t digest = 0;
  uint64_t examples = 0;
  data::Remainder data;
};

/// What the processes share.
struct PsCluster {
  World& world;
  const PsOptions& options;
  Truth truth;
  PsCheckpoint checkpoint;
  bool over = false;       ///< the chief has written the summary
  std::set<Process> left;  ///< processes that ended in order

  PsCluster(World& w, const PsOptions& o) : world(w), options(o), truth(w, o) {}
  [[nodiscard]] Process server(int index) const { return index; }
  [[nodiscard]] Process worker(int index) const { return options.servers + index; }
  /// Returns the number of a new process.
  uint64_t born(Process process) {
    lives_.emplace_back(process, world.life(process));
    return lives_.size();
  }
  [[nodiscard]] bool lives(uint64_t incarnation) const {
    const auto& [process, life] = lives_[incarnation - 1];
    return world.alive(process) && world.life(process) == life;
  }
  [[nodiscard]] bool is_twin(Process process) const {
    return process >= options.servers + options.workers + (options.evaluator ? 1 : 0);
  }
  /// Their launcher asks the servers to end: the others have left.
  [[nodiscard]] bool asks_to_end();
  /// A server looks at its deadlines about every second, whatever it waits for.
  void looked(Process server) { looked_[server] = {world.life(server), world.now()}; }
  void check_that_servers_look();
  /// The process ends with an error; its launcher starts it again.
  void crash(Process process, const std::string& why);

 private:
  double workers_left_at_ = -1;
  std::map<Process, std::pair<uint64_t, double>> looked_;  ///< life and time
  std::vector<std::pair<Process, uint64_t>> lives_;        ///< by incarnation - 1
};

std::unique_ptr<Actor> make_server(PsCluster& cluster, Process me, int index);
std::unique_ptr<Actor> make_worker(PsCluster& cluster, Process me, int index);
std::unique_ptr<Actor> make_evaluator(PsCluster& cluster, Process me);

}  // namespace lockstep::simulation
