#include "cluster/tf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "base/temp_dir.h"
#include "lockstep/error.h"

namespace lockstep::cluster {
namespace {

using ::lockstep::testing::message_of;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Form {
  const char* what;
  const char* text;
  Spec spec;
  Task task;
};

std::ostream& operator<<(std::ostream& out, const Form& form) { return out << form.what; }

class TfConfigForms : public ::testing::TestWithParam<Form> {};

TEST_P(TfConfigForms, IsRead) {
  const std::optional<TfConfig> config = parse_tf_config(GetParam().text);
  ASSERT_TRUE(config);
  EXPECT_EQ(config->spec, GetParam().spec);
  EXPECT_EQ(config->task, GetParam().task);
}

INSTANTIATE_TEST_SUITE_P(
    All, TfConfigForms,
    ::testing::Values(
        Form{
            "the form of the semantics",
            R"({"cluster":{"chief":["h0:1"],"worker":["h1:1","h2:1"],"ps":["h3:1"]},"task":{"type":"worker","index":1}})",
            {{"h0:1"}, {"h1:1", "h2:1"}, {"h3:1"}, {}},
            {Role::worker, 1}},
        Form{"with extra keys, as TFJob writes it",
             R"({"cluster":{"ps":["j-ps-0.ns.svc:2222"],"worker":["j-worker-0.ns.svc:2222"]},
                 "task":{"type":"ps","index":0},"environment":"cloud","rpc_layer":"grpc","job":{"x":[1,{"y":2}]}})",
             {{}, {"j-worker-0.ns.svc:2222"}, {"j-ps-0.ns.svc:2222"}, {}},
             {Role::ps, 0}},
        Form{
            "extra keys in the task",
            R"({"cluster":{"worker":["a:1"],"ps":["b:1"]},"task":{"type":"worker","index":0,"trial":"7","cloud":true}})",
            {{}, {"a:1"}, {"b:1"}, {}},
            {Role::worker, 0}},
        Form{"the chief itself",
             R"({"cluster":{"chief":["h0:1"],"worker":["h1:1"],"ps":["h3:1"]},"task":{"type":"chief","index":0}})",
             {{"h0:1"}, {"h1:1"}, {"h3:1"}, {}},
             {Role::chief, 0}},
        Form{"no chief",
             R"({"cluster":{"worker":["h1:1","h2:1"],"ps":["h3:1","h4:1"]},"task":{"type":"ps","index":1}})",
             {{}, {"h1:1", "h2:1"}, {"h3:1", "h4:1"}, {}},
             {Role::ps, 1}},
        Form{"master, the older name",
             R"({"cluster":{"master":["h0:1"],"worker":["h1:1"],"ps":["h3:1"]},"task":{"type":"master","index":0}})",
             {{"h0:1"}, {"h1:1"}, {"h3:1"}, {}},
             {Role::chief, 0}},
        Form{
            "the evaluator inside the cluster",
            R"({"cluster":{"worker":["h1:1"],"ps":["h3:1"],"evaluator":["h4:1"]},"task":{"type":"evaluator","index":0}})",
            {{}, {"h1:1"}, {"h3:1"}, {"h4:1"}},
            {Role::evaluator, 0}},
        Form{"the evaluator inside the cluster, seen by a worker",
             R"({"cluster":{"worker":["h1:1"],"ps":["h3:1"],"evaluator":["h4:1"]},"task":{"type":"worker","index":0}})",
             {{}, {"h1:1"}, {"h3:1"}, {"h4:1"}},
             {Role::worker, 0}},
        Form{"the evaluator outside the cluster",
             R"({"cluster":{"chief":["h0:1"],"worker":["h1:1"],"ps":["h3:1"]},"task":{"type":"evaluator","index":0}})",
             {{"h0:1"}, {"h1:1"}, {"h3:1"}, {""}},
             {Role::evaluator, 0}},
        Form{"sparse: a worker that knows itself and the ps",
             R"({"cluster":{"worker":{"1":"h2:1"},"ps":["h3:1"]},"task":{"type":"worker","index":1}})",
             {{}, {"", "h2:1"}, {"h3:1"}, {}, true},
             {Role::worker, 1}},
        Form{"sparse without a hole: still there may be more",
             R"({"cluster":{"worker":{"0":"h2:1"},"ps":["h3:1"]},"task":{"type":"worker","index":0}})",
             {{}, {"h2:1"}, {"h3:1"}, {}, true},
             {Role::worker, 0}},
        Form{"sparse, as TFJob writes it for dynamic workers",
             R"({"sparseCluster":{"worker":{"3":"h2:1"},"ps":["h3:1","h4:1"]},"task":{"type":"worker","index":3}})",
             {{}, {"", "", "", "h2:1"}, {"h3:1", "h4:1"}, {}, true},
             {Role::worker, 3}},
        Form{"sparse, seen by the ps: the workers come",
             R"({"sparseCluster":{"worker":{},"ps":["h3:1"]},"task":{"type":"ps","index":0}})",
             {{}, {}, {"h3:1"}, {}, true},
             {Role::ps, 0}},
        Form{"the index as text",
             R"({"cluster":{"worker":["h1:1","h2:1"],"ps":["h3:1"]},"task":{"type":"worker","index":"1"}})",
             {{}, {"h1:1", "h2:1"}, {"h3:1"}, {}},
             {Role::worker, 1}},
        Form{"no index where there is one only",
             R"({"cluster":{"worker":["h1:1"],"ps":["h3:1"]},"task":{"type":"ps"}})",
             {{}, {"h1:1"}, {"h3:1"}, {}},
             {Role::ps, 0}},
        Form{
            "empty and absent roles",
            R"({"cluster":{"chief":[],"worker":["h1:1"],"ps":null,"evaluator":[]},"task":{"type":"worker","index":0}})",
            {{}, {"h1:1"}, {}, {}},
            {Role::worker, 0}},
        Form{"IPv6",
             R"({"cluster":{"worker":["[::1]:1"],"ps":["[::1]:2"]},"task":{"type":"worker","index":0}})",
             {{}, {"[::1]:1"}, {"[::1]:2"}, {}},
             {Role::worker, 0}}));

TEST(TfConfig, NoClusterIsNoCluster) {
  for (const char* text : {"", " \n", "{}", R"({"task":{"type":"worker","index":0}})", R"({"cluster":{}})",
                           R"({"cluster":null,"task":{}})", R"({"environment":"cloud"})"}) {
    EXPECT_FALSE(parse_tf_config(text)) << text;
  }
}

TEST(TfConfig, ATaskMayBeMissing) {
  const auto config = parse_tf_config(R"({"cluster":{"worker":["h1:1"],"ps":["h3:1"]}})");
  ASSERT_TRUE(config);
  EXPECT_FALSE(config->task);
}

struct Wrong {
  const char* text;
  const char* message;
};

TEST(TfConfig, WhatIsWrongIsShownWithItsKey) {
  const std::vector<Wrong> cases{
      {R"({"cluster":{"worker":["h1:1","h2"],"ps":["h3:1"]}})", "cluster.worker[1]: 'h2' has no port"},
      {R"({"cluster":{"worker":["h1:1",7],"ps":["h3:1"]}})", "cluster.worker[1]: 7 is not an address"},
      {R"({"cluster":{"worker":"h1:1"}})", "cluster.worker: \"h1:1\" is not a list"},
      {R"({"cluster":{"worker":["h1:1","h1:1"]}})", "cluster.worker[1]: 'h1:1' is the address of worker:0 too"},
      {R"({"cluster":{"chief":["a:1","b:1"],"worker":["c:1"]}})", "cluster.chief[1]: a cluster has at most one chief"},
      {R"({"cluster":{"chief":["a:1"],"master":["b:1"]}})", "cluster.master: a cluster has one chief"},
      {R"({"cluster":{"evaluator":["a:1","b:1"],"worker":["c:1"]}})", "cluster.evaluator[1]: a cluster has at most"},
      {R"({"cluster":{"ps":["a:1"]}})", "cluster: no member trains"},
      {R"({"cluster":{"wroker":["a:1"]}})", "cluster.wroker: is not a role (did you mean 'worker'?)"},
      {R"({"cluster":{"worker":{"1":"a"}}})", "cluster.worker[1]: 'a' has no port"},
      {R"({"cluster":{"worker":{"x":"a:1"}}})", "cluster.worker[x]: an index is a whole number"},
      {R"({"cluster":{"worker":{"-1":"a:1"}}})", "cluster.worker[-1]: an index is a whole number"},
      {R"({"cluster":{"worker":{"4000000000":"a:1"}}})", "an index is a whole number from 0 to 9999"},
      {R"({"cluster":{"worker":{"1":"a:1","01":"b:1"}}})", "occurs twice"},
      {R"({"cluster":{"worker":["a:1"],"worker":["b:1"]}})", "key \"worker\" occurs twice"},
      {R"({"cluster":{"worker":["a:1"],"ps":{"1":"b:1"}}})", "cluster.ps[0]: has no address"},
      {R"({"cluster":[]})", "cluster: [] is not an object"},
      {R"({"cluster":"x"})", "cluster: \"x\" is not an object"},
      {R"({"cluster":{"worker":["a:1"]},"task":7})", "task: 7 is not an object"},
      {R"({"cluster":{"worker":["a:1"]},"task":{"index":0}})", "task.type: is missing"},
      {R"({"cluster":{"worker":["a:1"]},"task":{"type":7}})", "task.type: 7 is not a role"},
      {R"({"cluster":{"worker":["a:1"]},"task":{"type":"wrker"}})", "task.type: \"wrker\" is not a role (did you mean"},
      {R"({"cluster":{"worker":["a:1"]},"task":{"type":"ps","index":0}})", "task.type: \"ps\" is not in the cluster"},
      {R"({"cluster":{"worker":["a:1"]},"task":{"type":"worker","index":1}})", "task.index: 1 is out of range"},
      {R"({"cluster":{"worker":["a:1","b:1"]},"task":{"type":"worker","index":-1}})", "it takes 0 to 1"},
      {R"({"cluster":{"worker":["a:1","b:1"]},"task":{"type":"worker","index":1.5}})", "1.5 is out of range"},
      {R"({"cluster":{"worker":["a:1","b:1"]},"task":{"type":"worker","index":"x"}})", "\"x\" is out of range"},
      {R"({"cluster":{"worker":["a:1","b:1"]},"task":{"type":"worker","index":[0]}})", "[0] is out of range"},
      {R"({"cluster":{"worker":["a:1","b:1"]},"task":{"type":"worker"}})", "task.index: is missing"},
      {R"({"cluster":{"worker":["a:1"]},"task":{"type":"evaluator","index":1}})", "task.index: 1 is out of range"},
      {R"({"cluster":{"worker":{"2":"a:1"}},"task":{"type":"worker","index":1}})", "no address for worker:1"},
      {R"({"sparseCluster":{"worker":{},"ps":["a:1"]},"task":{"type":"ps","index":1}})",
       "ps:1 needs the address of ps:0"},
      {R"({"x":4e9999})", "has a number that is too large"},
      {"[]", "[] is not an object"},
      {"7", "7 is not an object"},
      {R"({"cluster":)", "is not valid JSON"},
      {R"({"cluster":{"worker":["a:1"]}} x)", "is not valid JSON"},
      {"\xff\xfe", "is not valid JSON"},
  };
  for (const Wrong& wrong : cases) {
    const std::string message = message_of<UsageError>([&] { parse_tf_config(wrong.text); });
    EXPECT_THAT(message, StartsWith("TF_CONFIG: ")) << wrong.text;
    EXPECT_THAT(message, HasSubstr(wrong.message)) << wrong.text;
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
}

TEST(TfConfig, DeepNestingAndHugeTextsAreRefused) {
  EXPECT_THAT(message_of<UsageError>([] { parse_tf_config(std::string(1000000, '[')); }), HasSubstr("deep"));
  const std::string deep = R"({"x":)" + std::string(500000, '[') + std::string(500000, ']') + "}";
  EXPECT_THAT(message_of<UsageError>([&] { parse_tf_config(deep); }), HasSubstr("deep"));
  EXPECT_THAT(message_of<UsageError>([] { parse_tf_config(std::string(2000000, ' ') + "{}"); }), HasSubstr("at most"));
}

TEST(TfConfig, ManyWorkersAreRead) {
  std::string text = R"({"cluster":{"ps":["p:1"],"worker":["w0:1")";
  for (int i = 1; i < 5000; ++i) text += ",\"w" + std::to_string(i) + ":1\"";
  const auto config = parse_tf_config(text + R"(]},"task":{"type":"worker","index":4999}})");
  ASSERT_TRUE(config);
  EXPECT_EQ(config->spec.address(*config->task), "w4999:1");
}

}  // namespace
}  // namespace lockstep::cluster
