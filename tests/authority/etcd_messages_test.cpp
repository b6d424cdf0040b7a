// What a client asks etcd, and how strictly it reads the answers.
#include "authority/etcd_messages.h"

#include <gtest/gtest.h>

#include "lockstep/error.h"

namespace lockstep::authority {
namespace {

const std::string kKey = "lockstep/job";
const Group kFirst{1, 0xab, {{0, 1}}};
const Group kNext{2, 0xcd, {{0, 1}, {1, 2}}};

TEST(EtcdAddress, HasHostsAndAPrefix) {
  const EtcdAddress plain = parse_etcd_address("etcd://127.0.0.1:2379");
  EXPECT_EQ(plain.str(), "127.0.0.1:2379");
  EXPECT_EQ(plain.prefix, "lockstep");
  const EtcdAddress more = parse_etcd_address("etcd://a:1,[::1]:2/team/a-1");
  EXPECT_EQ(more.str(), "a:1, [::1]:2");
  EXPECT_EQ(more.prefix, "team/a-1");
  for (const char* text : {"", "etcd:/a:1", "http://a:1", "etcd://", "etcd://a", "etcd://a:1,", "etcd://a:0",
                           "etcd://a:1/", "etcd://a:1/x y", "etcd://a:1,,b:2", "etcd://a:1/x\n"}) {
    EXPECT_THROW(parse_etcd_address(text), UsageError) << text;
  }
}

TEST(EtcdMessages, AreThoseOfTheInterface) {
  EXPECT_EQ(etcd_read(kKey).path, "/v3/kv/range");
  EXPECT_EQ(etcd_read(kKey).body, R"({"key":"bG9ja3N0ZXAvam9i"})");
  EXPECT_EQ(etcd_swap(kKey, {{}, kFirst}).body,
            R"({"compare":[{"key":"bG9ja3N0ZXAvam9i","result":"EQUAL","target":"VERSION","version":"0"}],)"
            R"("failure":[{"request_range":{"key":"bG9ja3N0ZXAvam9i"}}],)"
            R"("success":[{"request_put":{"key":"bG9ja3N0ZXAvam9i","value":"MSBhYiAwOjE="}}]})");
  const std::string later = etcd_swap(kKey, {kFirst, kNext}).body;
  EXPECT_NE(later.find(R"("target":"VALUE","value":"MSBhYiAwOjE=")"), std::string::npos) << later;
  EXPECT_EQ(etcd_login("a\"b", "c").body, R"({"name":"a\"b","password":"c"})");
}

TEST(EtcdMessages, AReadHasTheGroup) {
  const base::Result<Answer> none = read_answer(R"({"header":{"revision":"1"}})", kKey);
  ASSERT_TRUE(none);
  EXPECT_EQ(none.value().group, Group{});
  const base::Result<Answer> one = read_answer(
      R"({"header":{},"kvs":[{"key":"bG9ja3N0ZXAvam9i","value":"MSBhYiAwOjE=","version":"1"}],"count":"1"})", kKey);
  ASSERT_TRUE(one);
  EXPECT_EQ(one.value().outcome, Outcome::present);
  EXPECT_EQ(one.value().group, kFirst);
}

TEST(EtcdMessages, ASwapIsWonOrLost) {
  const auto answer = [](const char* body, const Swap& swap) { return swap_answer(body, kKey, swap); };
  const auto won =
      answer(R"({"header":{},"succeeded":true,"responses":[{"response_put":{"header":{}}}]})", {{}, kFirst});
  ASSERT_TRUE(won);
  EXPECT_EQ(won.value().outcome, Outcome::won);
  EXPECT_EQ(won.value().group, kFirst);
  const char* const held =
      R"({"header":{},"responses":[{"response_range":{"kvs":[{"key":"bG9ja3N0ZXAvam9i","value":"MSBhYiAwOjE="}]}}]})";
  const auto lost = answer(held, {{}, kNext});
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost.value().outcome, Outcome::lost);
  EXPECT_EQ(lost.value().group, kFirst);
  const auto again = answer(held, {{}, kFirst});
  ASSERT_TRUE(again);
  EXPECT_EQ(again.value().outcome, Outcome::won) << "it is there already";
  EXPECT_FALSE(answer(held, {kFirst, kNext})) << "it cannot lose against what it expects";
}

TEST(EtcdMessages, OtherAnswersAreNone) {
  for (const char* body : {"", "null", "[]", "{}", "{\"header\":1}", "{\"header\":{},\"kvs\":{}}",
                           R"({"header":{},"kvs":[{"key":"bG9ja3N0ZXAvam9i","value":"MSBhYiAwOjE="},{}]})",
                           R"({"header":{},"kvs":[{"key":"b3RoZXI=","value":"MSBhYiAwOjE="}]})",
                           R"({"header":{},"kvs":[{"key":"bG9ja3N0ZXAvam9i","value":"MSBhYiAwOjE"}]})",
                           R"({"header":{},"kvs":[{"key":"bG9ja3N0ZXAvam9i","value":"!!!!"}]})",
                           R"({"header":{},"kvs":[{"key":"bG9ja3N0ZXAvam9i","value":7}]})",
                           R"({"header":{},"kvs":[{"key":"bG9ja3N0ZXAvam9i"}]})", R"({"header":{},"kvs":["x"]})"}) {
    EXPECT_FALSE(read_answer(body, kKey)) << body;
  }
  const auto other = read_answer(R"({"header":{},"kvs":[{"key":"bG9ja3N0ZXAvam9i","value":"aGVsbG8="}]})", kKey);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.failure().kind, base::FailureKind::usage);
  EXPECT_EQ(other.failure().text, "its key lockstep/job holds something else than a group");
  for (const char* body :
       {"", "{}", R"({"succeeded":1,"responses":[{"response_put":{}}]})", R"({"succeeded":true,"responses":[]})",
        R"({"succeeded":true})", R"({"succeeded":true,"responses":[{"response_range":{}}]})",
        R"({"responses":[{"response_put":{}}]})", R"({"responses":[7]})", R"({"responses":[{"response_range":7}]})"}) {
    EXPECT_FALSE(swap_answer(body, kKey, {{}, kFirst})) << body;
  }
  for (const char* body :
       {"", "{}", R"({"token":""})", R"({"token":7})", R"({"token":"a b"})", "{\"token\":\"a\\r\\nX: y\"}"}) {
    EXPECT_FALSE(login_answer(body)) << body;
  }
  EXPECT_EQ(login_answer(R"({"header":{},"token":"abc.9"})").value(), "abc.9");
}

TEST(EtcdMessages, AnErrorSaysWhetherToAskAgain) {
  const auto remedy = [](int status, const char* body) { return etcd_error(status, body).remedy; };
  EXPECT_EQ(remedy(400, R"({"error":"etcdserver: authentication failed","code":3})"), EtcdRemedy::give_up);
  EXPECT_EQ(remedy(403, R"({"error":"etcdserver: permission denied","code":7})"), EtcdRemedy::give_up);
  EXPECT_EQ(remedy(401, R"({"error":"etcdserver: invalid auth token","code":16})"), EtcdRemedy::log_in);
  EXPECT_EQ(remedy(503, R"({"error":"etcdserver: no leader","code":14})"), EtcdRemedy::ask_again);
  EXPECT_EQ(remedy(500, "oh"), EtcdRemedy::ask_again);
  EXPECT_EQ(remedy(200, ""), EtcdRemedy::ask_again);
  const EtcdError other = etcd_error(404, "<html>");
  EXPECT_EQ(other.remedy, EtcdRemedy::give_up);
  EXPECT_EQ(other.text, "HTTP status 404: it does not speak etcd's v3 interface");
  EXPECT_EQ(etcd_error(503, R"({"error":"two\nlines","code":14})").text, "two lines");
}

}  // namespace
}  // namespace lockstep::authority
