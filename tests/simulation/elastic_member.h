// A member of an elastic group as an Actor: the real Assembly, with its connections, its training thread, its disk and
// its questions to the authority played by the World. What ElasticMembership, Mesh and AllReduceExchange do with
// threads is done here by events.
//
//   elastic_member.cpp            the training thread: forming groups, steps, checkpoints, the end
//   elastic_member_network.cpp    connections, as those of the mesh
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
#include "simulation/elastic_judge.h"
#include "simulation/world.h"

namespace lockstep::simulation {

// Messages.
struct Greeting {
  uint64_t incarnation = 0;
};
struct EngineHello {
  uint64_t group = 0;  ///< id
};
/// A member's part of a step.
struct StepNote {
  uint64_t group = 0;
  uint64_t state = 0;
  bool stop = false;
  bool regroup = false;
};
struct StateSent {
  uint64_t group = 0;
  uint64_t state = 0;
};
struct AskRegister {
  uint64_t number = 0;
  std::optional<authority::Swap> swap;
};
struct RegisterSays {
  uint64_t number = 0;
  authority::Answer answer;
};
using ElasticMessage =
    std::variant<Greeting, allreduce::elastic::Message, EngineHello, StepNote, StateSent, AskRegister, RegisterSays>;
using ElasticPacket = std::shared_ptr<const ElasticMessage>;
std::string describe(const ElasticMessage& message);

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
  ElasticMember(World& world, Process me, ElasticJudge& judge, Disk* shared);
  ~ElasticMember() override;

  void start() override;
  void accepted(Link link, Process from) override;
  void connected(Link link) override;
  void received(Link link, const std::any& message) override;
  void closed(Link link, const std::string& why) override;

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
  Disk& disk() { return shared_ != nullptr ? *shared_ : world_.disk(me_); }

  // The network.
  void try_peer(int member);
  void retry_peer(int member);
  void probe(int member);
  void enter(int member, Link link, uint64_t incarnation);
  void lose(int member, const std::string& why);
  void send(Link link, ElasticMessage message);
  void send_to(int member, ElasticMessage message);
  void send_all(const ElasticMessage& message);
  void watch();
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
  void leave();
  [[nodiscard]] allreduce::Standing standing() const;
  [[nodiscard]] bool leads() const;
  uint64_t read_checkpoint();
  void tick();

  World& world_;
  const Process me_;
  ElasticJudge& judge_;
  Disk* const shared_;
  uint64_t incarnation_ = 0;
  std::unique_ptr<allreduce::elastic::Assembly> assembly_;
  std::vector<Peer> peers_;
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
  bool written_ = false;
};

}  // namespace lockstep::simulation
