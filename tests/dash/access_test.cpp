// Access to the dashboard.
#include "dash/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dash/dash.h"
#include "lockstep/error.h"

namespace lockstep::dash {
namespace {

using ::testing::HasSubstr;

http::Request request_for(const std::string& target, const std::string& headers) {
  http::Response refused;
  return http::parse_request("GET " + target + " HTTP/1.1\r\n" + headers + "\r\n", refused).value();
}

int answered(const Access& access, const std::string& target, const std::string& headers) {
  const std::optional<http::Response> refusal = access.refusal(request_for(target, headers));
  return refusal ? refusal->status : 200;
}

TEST(Access, OnLoopbackOnlyThisMachinesNamesAreAnswered) {
  const Access access("127.0.0.1", "", 6007);
  for (const char* host : {"localhost", "localhost:6007", "127.0.0.1:6007", "127.9.9.9", "[::1]:6007", "localhost:8000",
                           "LocalHost:6007"}) {
    EXPECT_EQ(answered(access, "/", std::string("Host: ") + host + "\r\n"), 200) << host;
  }
  for (const char* host :
       {"evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1:6007", "[::1", ""}) {
    EXPECT_EQ(answered(access, "/", std::string("Host: ") + host + "\r\n"), 403) << host;
  }
  EXPECT_EQ(answered(access, "/", ""), 403);
}

TEST(Access, ATokenIsAskedForInEveryRequestAndKeptAsACookie) {
  const std::string token = make_token();
  const Access access("0.0.0.0", token, 6007);
  const std::string host = "Host: node7:6007\r\n";
  EXPECT_EQ(answered(access, "/", host), 401);
  EXPECT_EQ(answered(access, "/api/runs", host), 401);
  EXPECT_EQ(answered(access, "/?token=" + token.substr(1), host), 401);
  EXPECT_EQ(answered(access, "/?token=" + token + "0", host), 401);
  EXPECT_EQ(answered(access, "/api/runs?token=" + token, host), 200);
  const std::optional<http::Response> onward = access.refusal(request_for("/?token=" + token, host));
  ASSERT_TRUE(onward);
  EXPECT_EQ(onward->status, 303);
  EXPECT_EQ(onward->headers.at(0).second, "/");
  const std::string cookie = onward->headers.at(1).second;
  EXPECT_THAT(cookie, HasSubstr("HttpOnly; SameSite=Lax"));
  const std::string kept = cookie.substr(0, cookie.find(';'));
  EXPECT_EQ(answered(access, "/api/runs", host + "Cookie: other=1; " + kept + "\r\n"), 200);
  EXPECT_EQ(answered(access, "/api/runs", host + "Cookie: " + kept + "x\r\n"), 401);
}

TEST(Access, OnlyLoopbackGoesWithoutAToken) {
  EXPECT_THROW(Access("0.0.0.0", "", 1), UsageError);
  EXPECT_THROW(Access("node7", "", 1), UsageError);
  EXPECT_THROW(Access("127.0.0.1", "short", 1), UsageError);
  EXPECT_THROW(Access("127.0.0.1", "sixteen characters & more", 1), UsageError);
  EXPECT_EQ(Access("::1", "", 6007).url(), "http://[::1]:6007/");
  EXPECT_NE(make_token(), make_token());
}

}  // namespace
}  // namespace lockstep::dash
