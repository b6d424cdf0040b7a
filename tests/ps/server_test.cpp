// A server when peers reconnect, parameters are set again, or it dies at the wrong moment.
#include <gmock/gmock.h>

#include "server_support.h"

namespace lockstep::ps {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Peer;
using testing::Ps0;
using train::StopReason;

StopReason stop_of(const wire::Reply& reply) { return static_cast<StopReason>(reply.stop()); }

transport::Header stop_for(StopReason reason) {
  transport::Header header = ps::header(Kind::stop);
  header.extra = static_cast<uint64_t>(reason);
  return header;
}

TEST(Generations, ALaterOneEndsTheConnectionsOfThoseWhoWaitedForTheFirst) {
  Ps0 ps(2, Durability::process);
  Peer worker(ps, "worker:1", 1);  // before there are parameters
  Peer chief(ps, "worker:0", 0);
  chief.initialise(1);
  EXPECT_TRUE(worker.pulls()) << "it goes on with the first ones";
  chief.initialise(2);
  EXPECT_FALSE(worker.pulls()) << "its gradients are of other parameters";
}

/// Only the chief can set them, so a server restarted at this moment must not make it wait.
TEST(FirstParameters, TheChiefDoesNotWaitForThemWhateverItAsks) {
  for (const Kind kind : {Kind::join, Kind::pull, Kind::hold, Kind::leave, Kind::wait_end}) {
    Ps0 ps(2, Durability::checkpoint);
    Peer chief(ps, "worker:0", 0);
    chief.say(header(kind));
    const auto answer = chief.stream().read();
    ASSERT_TRUE(answer) << answer.failure().message();
    EXPECT_THAT(answer.value().text(), HasSubstr("the chief must set the parameters before"));
    Peer again(ps, "worker:0", 0);
    again.initialise(1);
    EXPECT_EQ(stop_of(again.join()), StopReason::none);
  }
}

TEST(ControlStreams, TheLateEndOfAnOldOneDoesNotCountAProcessOut) {
  Ps0 ps(1, Durability::process);
  Peer old_control(ps, "worker:0", 0, true);
  Peer control(ps, "worker:0", 0, true);
  Peer data(ps, "worker:0", 0);
  data.initialise(1);
  EXPECT_EQ(stop_of(data.join()), StopReason::none);
  ASSERT_EQ(ps.server().progress().active, 1);
  old_control.close();
  EXPECT_EQ(ps.server().progress().active, 1);
  EXPECT_TRUE(data.pulls());
  EXPECT_THAT(ps.lines(), IsEmpty());
  control.close();
  EXPECT_EQ(ps.server().progress().active, 0);
  ASSERT_EQ(ps.lines().size(), 1U);
  EXPECT_THAT(ps.lines().front(), HasSubstr("its connection closed; training goes on"));
}

TEST(EvaluatorsStop, IsKeptByAServerThatDies) {
  Ps0 ps(1, Durability::process);
  {
    Peer chief(ps, "worker:0", 0);
    chief.initialise(1);
    Peer evaluator(ps, "evaluator:0", -1);
    evaluator.say(stop_for(StopReason::accuracy));
    chief.wait_end();  // the stop has arrived
  }
  ps.kill();
  ps.start();
  EXPECT_EQ(stop_of(Peer(ps, "worker:0", 0).join()), StopReason::accuracy);
}

TEST(EvaluatorsStop, StaysWhenParametersAreSetAnew) {
  Ps0 ps(1, Durability::process);
  Peer chief(ps, "worker:0", 0);
  chief.initialise(1);
  Peer evaluator(ps, "evaluator:0", -1);
  evaluator.say(stop_for(StopReason::loss));
  chief.wait_end();
  chief.initialise(2);
  EXPECT_EQ(stop_of(chief.join()), StopReason::loss);
}

TEST(EvaluatorsStop, ThatComesBeforeTheFirstParametersCounts) {
  Ps0 ps(1, Durability::checkpoint);
  Peer evaluator(ps, "evaluator:0", -1);
  evaluator.say(stop_for(StopReason::accuracy));
  Peer chief(ps, "worker:0", 0);
  chief.initialise(1);
  chief.wait_end();
  EXPECT_EQ(stop_of(chief.join()), StopReason::accuracy);
}

}  // namespace
}  // namespace lockstep::ps
