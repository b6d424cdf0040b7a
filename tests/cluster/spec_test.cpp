#include "cluster/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/temp_dir.h"
#include "lockstep/error.h"

namespace lockstep::cluster {
namespace {

using ::lockstep::testing::message_of;
using ::testing::HasSubstr;

TEST(Task, ReadsWhatItWrites) {
  for (const Task task : {Task{Role::ps, 0}, Task{Role::worker, 17}, Task{Role::chief, 0}, Task{Role::evaluator, 0}}) {
    EXPECT_EQ(parse_task(task.str()), task) << task.str();
  }
  EXPECT_EQ(parse_task("worker:1").folder(), "worker-1");
  EXPECT_EQ(parse_task("master:0"), (Task{Role::chief, 0}));
}

TEST(Task, AWrongOneGetsALineThatSaysWhatIsAllowed) {
  EXPECT_EQ(message_of<UsageError>([] { parse_task("wroker:1"); }),
            "'wroker:1' is not a task (did you mean 'worker:1'?); allowed are chief:0, worker:N, ps:N and evaluator:0");
  for (const char* text :
       {"", ":", "worker", "worker:", "worker:-1", "worker:+1", "worker:1x", "worker: 1", "worker:1:2", "worker:10000",
        "worker:99999999999999999999", "chief:1", "evaluator:1", "banana:0"}) {
    EXPECT_THAT(message_of<UsageError>([&] { parse_task(text); }), HasSubstr("is not a task")) << text;
  }
}

TEST(Spec, TheChiefIsTheFirstMember) {
  const Spec named{{"a:1"}, {"b:1", "c:1"}, {"p:1"}, {"e:1"}};
  EXPECT_EQ(named.members(), (std::vector<Task>{{Role::chief, 0}, {Role::worker, 0}, {Role::worker, 1}}));
  EXPECT_EQ(named.member_index({Role::worker, 1}), 2);
  EXPECT_EQ(named.chief_task(), (Task{Role::chief, 0}));
  EXPECT_EQ(named.address({Role::worker, 1}), "c:1");

  const Spec unnamed{{}, {"b:1", "c:1"}, {"p:1"}, {}};
  EXPECT_EQ(unnamed.chief_task(), (Task{Role::worker, 0}));
  EXPECT_EQ(unnamed.member_index({Role::worker, 0}), 0);
  EXPECT_EQ(unnamed.member_index({Role::chief, 0}), -1);
}

TEST(Spec, ListsServersThenMembersThenTheEvaluator) {
  const Spec spec{{"a:1"}, {"b:1"}, {"p:1", "q:1"}, {"e:1"}};
  std::string all;
  for (const Task& task : spec.tasks()) all += task.str() + " ";
  EXPECT_EQ(all, "ps:0 ps:1 chief:0 worker:0 evaluator:0 ");
  EXPECT_EQ(spec.member_index({Role::ps, 0}), -1);
  EXPECT_EQ(spec.member_index({Role::evaluator, 0}), -1);
  EXPECT_FALSE(spec.contains({Role::worker, 1}));
  EXPECT_EQ(spec.address({Role::worker, 1}), "");
  EXPECT_EQ(spec.address({Role::worker, -1}), "");
}

TEST(Spec, KnowsWhetherItStaysOnThisMachine) {
  EXPECT_TRUE((Spec{{}, {"127.0.0.1:1", "127.0.0.2:1"}, {"[::1]:1", "localhost:2"}, {}}.loopback_only()));
  EXPECT_TRUE((Spec{{}, {"", "127.0.0.1:1"}, {"localhost:2"}, {}}.loopback_only()));
  EXPECT_FALSE((Spec{{}, {"127.0.0.1:1", "10.0.0.1:1"}, {"localhost:2"}, {}}.loopback_only()));
  EXPECT_FALSE((Spec{{}, {"127.evil.example:1"}, {}, {}}.loopback_only()));
}

TEST(Spec, AProcessListensWhereItIsOrOnAllInterfaces) {
  for (const char* exact : {"127.0.0.2:1", "localhost:1", "[::1]:1", "10.0.0.7:1", "[2001:db8::7]:1"}) {
    EXPECT_EQ(listen_address(exact), exact);
  }
  EXPECT_EQ(listen_address("job-ps-0.ns.svc:2222"), "[::]:2222");
}

TEST(FindProblem, AGoodSpecHasNone) {
  EXPECT_FALSE(find_problem({{"a:1"}, {"b:1"}, {"c:1"}, {"d:1"}}));
  EXPECT_FALSE(find_problem({{}, {"b:1"}, {}, {}}));
  EXPECT_FALSE(find_problem({{"a:1"}, {}, {}, {}}));
  EXPECT_FALSE(find_problem({{}, {"", "", "b:1"}, {"c:1"}, {}, true}));
  EXPECT_FALSE(find_problem({{}, {}, {"c:1"}, {}, true}));
}

TEST(FindProblem, NamesTheTaskWhoseEntryIsWrong) {
  const auto twice = find_problem({{}, {"b:1", "B:1"}, {"c:1"}, {}});
  ASSERT_TRUE(twice);
  EXPECT_EQ(twice->task, (Task{Role::worker, 1}));
  EXPECT_EQ(twice->text, "'B:1' is the address of worker:0 too");
  EXPECT_EQ(find_problem({{"a:1", "b:1"}, {"c:1"}, {}, {}})->text, "a cluster has at most one chief, not 2");
  EXPECT_EQ(find_problem({{}, {"c:1"}, {}, {"a:1", "b:1"}})->text, "a cluster has at most one evaluator, not 2");
  EXPECT_THAT(find_problem({{}, {}, {"c:1"}, {}})->text, HasSubstr("no member trains"));
  EXPECT_THAT(find_problem({{}, {"c"}, {}, {}})->text, HasSubstr("has no port"));
}

}  // namespace
}  // namespace lockstep::cluster
