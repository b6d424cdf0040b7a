// What a worker of parameter servers decides: to which servers it sends a push again, whose answer it waits for, when
// it joins again, levels the servers' versions, or gives up, and how it leaves. It acts on the servers through the
// interface Servers, whose calls return when they are done or have failed. No threads, network or clock of its own: a
// simulation plays it. For the training thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cluster.pb.h"
#include "exchange/exchange.h"
#include "ps/server_link.h"

namespace lockstep::ps {

/// A worker's connections to the servers ps:0, ps:1 ... The messages go over the connection that is there; they fail if
/// it was lost.
class Servers {
 public:
  virtual ~Servers() = default;

  [[nodiscard]] virtual int count() const = 0;
  /// Connects, unless it is connected, for as long as the patience lasts. The failure names `awaited`.
  virtual base::Status connect(int server, const std::string& awaited) = 0;
  /// Number of connections so far: after a change, earlier messages may be lost.
  [[nodiscard]] virtual uint64_t connections(int server) const = 0;
  [[nodiscard]] virtual bool intact(int server) = 0;
  /// What it said when it was connected.
  [[nodiscard]] virtual const wire::Welcome& welcome(int server) const = 0;
  virtual void drop(int server, const std::string& why) = 0;
  /// Training has ended: the server said so, or there are signs of it.
  [[nodiscard]] virtual bool ended(int server) const = 0;
  [[nodiscard]] virtual train::StopReason why_ended(int server) const = 0;
  /// From now on this server's answer is waited for; -1: none. The loss of another server that the answer needs ends
  /// the wait: ps:0 needs all, and the others need ps:0.
  virtual void waits_for(int server) = 0;

  /// Sends the rest of the gradients, or all of them, and the end of the push.
  virtual base::Status push(int server, bool whole) = 0;
  struct Parameters {
    uint64_t version = 0;
    wire::Reply reply;
  };
  /// Takes the parameters of the next answer.
  virtual base::Result<Parameters> read_parameters(int server) = 0;
  /// The push in flight was answered.
  virtual void answered(int /*server*/, const wire::Reply& /*reply*/) {}
  /// `version` and `generation`: what this worker had before.
  virtual base::Status ask_to_join(uint64_t version, uint64_t generation) = 0;
  virtual base::Status ask_for(int server, uint64_t version) = 0;
  /// The chief: gets the first parameters, or those of the newest checkpoint; returns their version.
  virtual uint64_t find_initial() = 0;
  virtual base::Status initialise(int server, uint64_t generation) = 0;
  virtual base::Status say_leave(const wire::Leave& leave) = 0;
  /// Waits until all have finished; true: there is work left.
  virtual base::Result<bool> wait_end() = 0;
  virtual base::Status hold() = 0;
  virtual void release() = 0;
  /// Takes the state of a server, of `version` or newer; returns its version.
  virtual base::Result<uint64_t> read_state(int server, uint64_t version) = 0;
};

struct WorkerFlowOptions {
  int member = 0;
  bool sync = true;
  Log log;
  std::function<bool()> interrupted;
};

class WorkerFlow {
 public:
  WorkerFlow(Servers& servers, WorkerFlowOptions options);

  base::Result<std::optional<exchange::StepInfo>> join();
  /// A push begins that holds these batches.
  void begin(int64_t batches);
  /// Whether buckets of the push still go to the server; `broken`: they could not be sent.
  [[nodiscard]] bool streams_to(int server) const;
  void broken(int server) { at(server).pushed_on = 0; }
  /// Sends the rest of the push to all servers.
  void send();
  /// Waits for the answers.
  base::Result<exchange::StepInfo> await();
  base::Result<std::optional<exchange::StepInfo>> leave(const exchange::Farewell& farewell);
  /// The chief: brings all state to one version, and takes it.
  base::Status snapshot();

  /// Version of the parameters received last.
  [[nodiscard]] uint64_t version(int server) const { return parts_[static_cast<size_t>(server)].version; }
  [[nodiscard]] uint64_t sequence() const { return sequence_; }
  [[nodiscard]] uint64_t plan() const { return plan_; }
  [[nodiscard]] int64_t rounds() const { return rounds_; }
  [[nodiscard]] bool rejoined() const { return rejoined_; }
  /// Training ended without this process.
  [[nodiscard]] bool over() const { return over_; }
  [[nodiscard]] const std::string& run() const { return run_; }

 private:
  struct Part {
    uint64_t version = 0;    ///< version of the parameters received last
    uint64_t known_on = 0;   ///< connection that they came on
    uint64_t pushed_on = 0;  ///< connection that the push in flight went to; 0: broken
    bool sent = false;       ///< the whole push was sent
  };

  [[nodiscard]] Part& at(int server) { return parts_[static_cast<size_t>(server)]; }
  [[nodiscard]] const Part& at(int server) const { return parts_[static_cast<size_t>(server)]; }
  [[nodiscard]] bool chief() const { return options_.member == 0; }
  [[nodiscard]] bool ended() const;
  base::Status connect_all(const std::string& awaited);
  base::Status initialise_if_needed();
  base::Result<exchange::StepInfo> try_to_join();
  /// Joins as a new member: the others gave this process up, or the parameters were set again.
  base::Result<exchange::StepInfo> rejoin(const wire::Reply& reply);
  base::Status pull(int server, uint64_t version);
  /// Waits for this server's answer from now on. Fails if another one that the answer needs is lost already, because
  /// nobody would end the wait.
  base::Status wait_for(int server);
  /// Brings all servers to one version (sync).
  base::Status level();
  base::Result<wire::Reply> read(int server);
  base::Status push_rest(int server);
  /// The server has lost the parameters that this worker joined with: they are set again, and all join again.
  [[nodiscard]] bool went_back(int server) const;
  /// Waits while other servers have not the generation of parameters that ps:0 has: they are set again, ps:0's last.
  base::Status wait_for_one_generation(uint64_t generation);
  base::Result<std::optional<exchange::StepInfo>> join_anew();
  base::Status pull_last();
  /// Sends the push again to other servers that lost it. A version waits until every server has the push, so this comes
  /// before the wait for the first server's answer.
  base::Status push_to_others();
  base::Status prepare_others(int server);
  /// Sends the missing part of the push and reads the answer; retries after a failure.
  base::Result<wire::Reply> complete(int server);
  base::Result<exchange::StepInfo> answers();
  base::Status try_snapshot();
  [[nodiscard]] exchange::StepInfo info_from(const wire::Reply& reply);
  /// Sets the outcome from the answer; the stop in `info` is already set.
  static void set_outcome(exchange::StepInfo& info, const wire::Reply& reply);
  /// Ends training here because it has ended without this process.
  exchange::StepInfo end_after_others();
  void note(const base::Failure& failure);
  [[nodiscard]] std::string answer_to_push() const;

  Servers& servers_;
  WorkerFlowOptions options_;
  std::vector<Part> parts_;
  std::string run_;
  uint64_t generation_ = 0;  ///< generation of the parameters it joined with; 0: not joined
  std::string noted_;        ///< latest failure that was logged
  bool given_up_ = false;    ///< a server did not come back within the patience
  bool over_ = false;
  uint64_t sequence_ = 0;
  uint64_t plan_ = 0;
  int64_t rounds_ = 0;   ///< rounds of the plan since the last push
  int64_t batches_ = 0;  ///< of them in the push in flight
  bool rejoined_ = false;
  uint64_t held_on_ = 0;  ///< connection that holds ps:0 for a snapshot
};

}  // namespace lockstep::ps
