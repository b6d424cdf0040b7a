// A member of an elastic group as an Actor: the real Assembly, with its connections, its training thread, its disk and
// its questions to the authority played by the World. What ElasticMembership, Mesh and AllReduceExchange do with
// threads is done here by events.
//
//   elastic_member.cpp            the training thread: forming groups, steps
//   elastic_member_ending.cpp     its checkpoints, interrupts, the end
//   elastic_member_network.cpp    connections, as those of the mesh; a large cluster's are in elastic_tree.h
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "allreduce/elastic/assembly.h"
#include "authority/cell.h"
#include "simulation/elastic_engine.h"
#include "simulation/elastic_judge.h"
#include "simulation/elastic_tree.h"
#include "simulation/world.h"

namespace lockstep::simulation {

/// The authority: etcd's part. Its disk keeps the register.
class RegisterActor final : public Actor {
 public:
  RegisterActor(World& world, Process me, ElasticJudge& judge) : world_(world), me_(me), judge_(judge) {}
  void start() override;
  void received(Link link, const std::any& message) override;

 private:
  World& world_;
  const Process me_;
  ElasticJudge& judge_;
  authority::Cell cell_;
};

class ElasticMember final : public Actor {
 public:
  ElasticMember(World& world, Process me, ElasticJudge& judge);
  ~ElasticMember() override;

  void start() override;
  void accepted(Link link, Process from) override;
  void connected(Link link) override;
  void received(Link link, const std::any& message) override;
  void closed(Link link, const std::string& why) override;
  void interrupt() override;

  /// What it does and waits for, for a history that does not end.
  [[nodiscard]] std::string state() const;

 private:
  using Message = allreduce::elastic::Message;
  enum class Stage : uint8_t {
    starting,
    forming,
    connecting,
    receiving,  ///< the state
    computing,
    exchanging,
    saving,
    closing,    ///< the leader writes
    finishing,  ///< this member writes the results
    telling,    ///< all are told of the end
    parting,    ///< it was interrupted while it formed a group; the others are told
  };
  /// The connection to another member.
  struct Peer {
    Link link = -1;     ///< the lasting one
    Link attempt = -1;  ///< it does not know yet who is there
    bool arrived = false;
    uint64_t incarnation = 0;
    double heard = 0;
    double sent = 0;
    int tries = 0;
    bool probed = false;  ///< it was lost and should come back; its address is tried
  };
  struct Stranger {
    Process from = 0;
    double since = 0;
  };

  [[nodiscard]] double now() const { return world_.clock(me_); }
  [[nodiscard]] int members() const { return judge_.setup().members; }
  Peer& peer(int member) { return peers_[static_cast<size_t>(member)]; }
  [[nodiscard]] bool relayed() const { return judge_.setup().relayed; }
  Disk& disk() { return world_.disk(judge_.setup().shared_disk ? 0 : me_); }

  // The network.
  void try_peer(int member);
  void retry_peer(int member);
  void probe(int member);
  void enter(int member, Link link, uint64_t incarnation);
  void lose(int member, const std::string& why);
  void send(Link link, ElasticMessage message);
  void send_to(int member, ElasticMessage message);
  void send_all(const ElasticMessage& message);
  void send_out();
  void tell(const allreduce::elastic::News& news);
  void take_message(Link link, const ElasticMessage& message);
  void watch();
  void watch_strangers(bool paused);
  void ask_register(const allreduce::elastic::Question& question);
  void take_answer(uint64_t number, const authority::Answer& answer);

  // The training thread.
  void pump();
  bool work();
  void enter_stage(Stage stage);
  void form();
  bool work_forming();
  bool work_connecting();
  void adopt();
  bool work_receiving();
  void begin_step();
  void send_note();
  bool work_exchanging();
  void after_step(bool regroup, bool stop);
  void begin_saving(bool summary);
  bool work_saving();
  bool work_closing();
  bool work_telling();
  bool work_parting();
  void part();
  void keep();
  void leave();
  [[nodiscard]] std::optional<StepNote> sum_of_step() const;
  [[nodiscard]] bool group_fails() const;
  void look_for_ending();
  [[nodiscard]] uint64_t newest_kept();
  [[nodiscard]] allreduce::Standing standing() const;
  [[nodiscard]] bool leads() const;
  uint64_t read_checkpoint();
  void tick();

  World& world_;
  const Process me_;
  ElasticJudge& judge_;
  uint64_t incarnation_ = 0;
  std::unique_ptr<allreduce::elastic::Assembly> assembly_;
  std::vector<Peer> peers_;
  std::unique_ptr<ElasticTree> tree_;   ///< of a large cluster
  ElasticEngine engine_;                ///< likewise
  std::map<Link, int> probes_;          ///< connections that only try an address
  std::map<Link, Stranger> strangers_;  ///< accepted, without a greeting yet
  std::optional<allreduce::elastic::MemberStatus> last_status_;
  double ticked_ = 0;

  // The register.
  Link register_link_ = -1;
  bool register_connected_ = false;
  uint64_t asked_ = 0;
  std::optional<allreduce::elastic::Question> asking_;

  // Training.
  Stage stage_ = Stage::starting;
  double until_ = 0;  ///< end of the stage
  double since_ = 0;  ///< its beginning
  bool timer_ = false;
  allreduce::Standing here_;
  allreduce::Standing before_;  ///< from before the latest group
  uint64_t state_ = ElasticJudge::kInitial;
  data::Plan plan_;
  int64_t rounds_ = 0;
  std::optional<allreduce::elastic::Decision> decision_;
  std::map<uint64_t, std::set<int>> engines_;                               ///< by group id: who has begun to connect
  std::map<uint64_t, uint64_t> states_;                                     ///< by group id: the state that was sent
  std::map<std::pair<uint64_t, uint64_t>, std::map<int, StepNote>> notes_;  ///< by group id and state
  bool in_group_ = false;
  bool had_state_ = true;  ///< when its group was connected
  bool regroup_after_ = false;
  int written_ = 0;           ///< parts of writing a checkpoint that are done
  bool interrupted_ = false;  ///< by a user
  bool by_user_ = false;      ///< all stop because of an interrupt
};

}  // namespace lockstep::simulation
