// A process's connections to the servers of a simulated cluster, on a fiber: what ServerLink is in a real process, with
// its real LinkWatch.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "ps/link_watch.h"
#include "simulation/fiber.h"
#include "simulation/ps_cluster.h"

namespace lockstep::simulation {

/// Ends the process, with an error unless the text is empty.
struct ProcessEnds {
  std::string why;
};

class PsLinks {
 public:
  PsLinks(PsCluster& cluster, Process me, std::string role, int member);

  // For the actor.
  void start(std::function<void()> body);
  void connected(Link link);
  void received(Link link, const FramePtr& frame);
  void closed(Link link, const std::string& why);
  void drop_all();

  // For the fiber.
  base::Status connect(int server, const std::string& awaited);
  [[nodiscard]] bool intact(int server) const { return at(server).lost.empty() && at(server).data >= 0; }
  void drop(int server, const std::string& why);
  base::Status say(int server, Frame frame);
  template <class Message>
  base::Status say(int server, Frame frame, Message message) {
    frame.message = std::make_shared<const Message>(std::move(message));
    return say(server, std::move(frame));
  }
  /// Waits for the next frame, which must be of this kind.
  base::Result<FramePtr> read(int server, ps::Kind kind);
  void sleep(double seconds);
  [[nodiscard]] double now() const { return cluster_.world.clock(me_); }

  struct To {
    Link data = -1;
    Link control = -1;
    bool control_welcomed = false;
    bool made = false;      ///< the data connection is made
    bool welcomed = false;  ///< and welcomed
    std::string lost = "not connected";
    bool noticed = false;  ///< its end was told to who waits for other servers
    uint64_t connections = 0;
    wire::Welcome welcome;
    ps::LinkWatch watch;
    std::deque<FramePtr> inbox;
    bool ended = false;
    train::StopReason why_ended = train::StopReason::none;
  };
  [[nodiscard]] To& at(int server) { return to_[static_cast<size_t>(server)]; }
  [[nodiscard]] const To& at(int server) const { return to_[static_cast<size_t>(server)]; }
  int waits_for = -1;  ///< server whose answer is waited for
  [[nodiscard]] uint64_t incarnation() const { return incarnation_; }
  [[nodiscard]] PsCluster& cluster() { return cluster_; }
  [[nodiscard]] Process me() const { return me_; }

 private:
  void wait_until(const std::function<bool()>& done);
  void go_on();
  void end(const std::string& why);
  void keep_control(int server);
  void from_control(int server, const Frame& frame);
  void lose(int server, const std::string& why);
  void lost_control(int server, const std::string& why);
  void on_lost(int server);
  void watch();
  void watch_data(int server);
  [[nodiscard]] wire::Hello hello() const;
  [[nodiscard]] std::optional<base::Failure> try_to_connect(int server);
  void send(Link link, Frame frame);

  PsCluster& cluster_;
  Process me_;
  std::string role_;
  int member_;
  uint64_t incarnation_;
  std::vector<To> to_;
  std::function<bool()> wanted_;  ///< what the fiber waits for
  std::unique_ptr<Fiber> fiber_;
};

}  // namespace lockstep::simulation
