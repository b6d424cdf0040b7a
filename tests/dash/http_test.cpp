#include "dash/http.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dash/access.h"
#include "dash/dash.h"
#include "lockstep/error.h"

namespace lockstep::dash {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::optional<Request> parsed(const std::string& target, const std::string& headers = "Host: localhost\r\n") {
  Response refused;
  return parse_request("GET " + target + " HTTP/1.1\r\n" + headers + "\r\n", refused);
}

int refused_with(const std::string& text) {
  Response refused;
  return parse_request(text, refused) ? 0 : refused.status;
}

TEST(Http, APathIsItsDecodedParts) {
  EXPECT_THAT(parsed("/")->path, IsEmpty());
  EXPECT_THAT(parsed("/api/run/a%20b%3D1/charts?over=step")->path, ElementsAre("api", "run", "a b=1", "charts"));
  EXPECT_EQ(parsed("/x?over=a%2Cb&y")->parameter("over"), "a,b");
  EXPECT_EQ(parsed("/x?over=a")->parameter("y"), "");
}

TEST(Http, APathThatMeansToLeaveItsFolderIsNotThere) {
  for (const char* path :
       {"/..", "/../etc/passwd", "/api/run/../x", "/api/run/%2e%2e", "/api/run/..%2f..%2fetc", "/a%2Fb", "/a%5cb",
        "/api/run/.hidden", "//etc/passwd", "/api//run", "/a%00b", "/a%0ab", "/./x"}) {
    EXPECT_EQ(refused_with(std::string("GET ") + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n"), 404) << path;
  }
}

TEST(Http, WhatIsNoRequestIsRefused) {
  for (const char* text :
       {"\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/3\r\n\r\n", "get / HTTP/1.1\r\n\r\n", "GET x HTTP/1.1\r\n\r\n",
        "GET http://a/ HTTP/1.1\r\n\r\n", "GET /\x01 HTTP/1.1\r\n\r\n", "GET /%zz HTTP/1.1\r\n\r\n",
        "GET /%4 HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nno header\r\n\r\n", "GET / HTTP/1.1\r\n: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\nhost: evil\r\n\r\n"}) {
    EXPECT_EQ(refused_with(text), 400) << text;
  }
}

TEST(Http, EveryResponseCarriesTheSecurityHeaders) {
  const std::string text = response_text(plain_response(404, "no"), false);
  for (const char* header : {"X-Content-Type-Options: nosniff", "Referrer-Policy: no-referrer", "X-Frame-Options: DENY",
                             "Content-Length: 3\r\n", "HTTP/1.1 404 Not Found"}) {
    EXPECT_THAT(text, HasSubstr(header));
  }
  EXPECT_TRUE(text.ends_with("no\n"));
  EXPECT_TRUE(response_text(plain_response(404, "no"), true).ends_with("\r\n\r\n"));
}

int answered(const Access& access, const std::string& target, const std::string& headers) {
  const std::optional<Response> refusal = access.refusal(*parsed(target, headers));
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
  const std::optional<Response> onward = access.refusal(*parsed("/?token=" + token, host));
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
