// How the evaluator follows checkpoints of parameter servers that die.
#include "role/checkpoint_source.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "../ps/server_support.h"
#include "lockstep/error.h"

namespace lockstep::train {
namespace {

using ps::testing::Peer;
using ps::testing::Ps0;
using transport::testing::eventually;

TEST(EvaluatorsStop, IsSaidAgainToAServerThatHasForgottenIt) {
  Ps0 ps(1, ps::Durability::checkpoint);
  program::ParameterStore parameters({{"weights", {ps::testing::kParameters}, {}, {}}}, 1);
  role::ClusterProcess process;
  process.spec = ps.spec();
  process.task = {cluster::Role::evaluator, 0};
  process.log = [](std::string_view, const std::string&) {};
  std::atomic<bool> interrupt = false;
  const auto source = role::follow_checkpoints(settings::Settings{}, process, ps.job(), &interrupt, parameters);
  std::thread evaluator([&] {
    try {
      source->stop(StopReason::accuracy);
      EXPECT_EQ(source->next(0), std::nullopt);
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
  });
  {
    Peer chief(ps, "worker:0", 0);
    chief.initialise(1);
    chief.wait_end();  // the stop has arrived
  }
  ps.kill();
  ps.start();
  Peer chief(ps, "worker:0", 0);
  chief.initialise(2);
  std::atomic<bool> ended = false;
  std::thread waiting([&] {
    chief.wait_end();
    ended = true;
  });
  const bool told = eventually([&] { return ended.load(); });
  EXPECT_TRUE(told);
  if (!told) {  // wakes waiting threads
    interrupt = true;
    ps.kill();
  }
  waiting.join();
  if (told) chief.say(ps::header(ps::Kind::end));
  evaluator.join();
}

}  // namespace
}  // namespace lockstep::train
