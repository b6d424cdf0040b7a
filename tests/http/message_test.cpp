#include "http/message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::http {
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

TEST(Request, APathIsItsDecodedParts) {
  EXPECT_THAT(parsed("/")->path, IsEmpty());
  EXPECT_THAT(parsed("/api/run/a%20b%3D1/charts?over=step")->path, ElementsAre("api", "run", "a b=1", "charts"));
  EXPECT_EQ(parsed("/x?over=a%2Cb&y")->parameter("over"), "a,b");
  EXPECT_EQ(parsed("/x?over=a")->parameter("y"), "");
}

TEST(Request, APathThatMeansToLeaveItsFolderIsNotThere) {
  for (const char* path :
       {"/..", "/../etc/passwd", "/api/run/../x", "/api/run/%2e%2e", "/api/run/..%2f..%2fetc", "/a%2Fb", "/a%5cb",
        "/api/run/.hidden", "//etc/passwd", "/api//run", "/a%00b", "/a%0ab", "/./x", "/api/runs/"}) {
    EXPECT_EQ(refused_with(std::string("GET ") + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n"), 404) << path;
  }
}

TEST(Request, WhatIsNoRequestIsRefused) {
  for (const char* text :
       {"\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/3\r\n\r\n", "get / HTTP/1.1\r\n\r\n", "GET x HTTP/1.1\r\n\r\n",
        "GET http://a/ HTTP/1.1\r\n\r\n", "GET /\x01 HTTP/1.1\r\n\r\n", "GET /%zz HTTP/1.1\r\n\r\n",
        "GET /%4 HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nno header\r\n\r\n", "GET / HTTP/1.1\r\n: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\nhost: evil\r\n\r\n", "GET / HTTP/1.1\r\nHost : localhost\r\n\r\n",
        "GET / HTTP/1.1\r\nX: 1\r\n Host: localhost\r\n\r\n", "GET / HTTP/1.1\r\nHost: local\rhost\r\n\r\n",
        "\x16\x03\x01 / \xff\n\n"}) {
    EXPECT_EQ(refused_with(text), 400) << text;
  }
}

TEST(Request, HeadersMayNotHoldWhatEndsATextElsewhere) {
  using namespace std::string_literals;
  EXPECT_EQ(refused_with("GET / HTTP/1.1\r\nHost: localhost\0.evil.example\r\n\r\n"s), 400);
}

TEST(Request, HeadersAndCookiesAreFoundByName) {
  const std::optional<Request> request = parsed("/", "HOST:\tLocalhost \r\nCookie: a=1; b=2=3;c\r\nX:\r\n");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->header("host"), "Localhost");
  EXPECT_EQ(request->header("x"), "");
  EXPECT_EQ(request->header("y"), "");
  EXPECT_EQ(request->cookie("a"), "1");
  EXPECT_EQ(request->cookie("b"), "2=3");
  EXPECT_EQ(request->cookie("c"), "");
}

TEST(Request, IsWholeOnceAnEmptyLineHasCome) {
  for (const char* text : {"", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: x\r\n", "GET / HTTP/1.1\r\n\r"}) {
    EXPECT_FALSE(is_whole_request(text)) << text;
  }
  for (const char* text : {"\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\n\n", "GET / HTTP/1.1\n\r\n"}) {
    EXPECT_TRUE(is_whole_request(text)) << text;
  }
}

TEST(Response, EveryResponseCarriesTheSecurityHeaders) {
  const std::string text = response_text(plain_response(404, "no"), false);
  for (const char* header : {"X-Content-Type-Options: nosniff", "Referrer-Policy: no-referrer", "X-Frame-Options: DENY",
                             "Content-Length: 3\r\n", "HTTP/1.1 404 Not Found"}) {
    EXPECT_THAT(text, HasSubstr(header));
  }
  EXPECT_TRUE(text.ends_with("no\n"));
  EXPECT_TRUE(response_text(plain_response(404, "no"), true).ends_with("\r\n\r\n"));
}

}  // namespace
}  // namespace lockstep::http
