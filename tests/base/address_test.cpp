#include "base/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/temp_dir.h"
#include "lockstep/error.h"

namespace lockstep::base {
namespace {

using ::lockstep::testing::message_of;
using ::testing::HasSubstr;

TEST(Address, EveryFormIsRead) {
  EXPECT_EQ(parse_address("host:4000").host, "host");
  EXPECT_EQ(parse_address("host:4000").port, 4000);
  EXPECT_EQ(parse_address("[::1]:4000").host, "::1");
  EXPECT_EQ(parse_address("[fe80::1%eth0]:65535").host, "fe80::1%eth0");
  EXPECT_EQ(parse_address("job-worker-0.ns.svc.cluster.local:1").host, "job-worker-0.ns.svc.cluster.local");
  for (const char* text : {"10.0.0.1:80", "[2001:db8::7]:4000", "node01:4000"}) {
    const Address address = parse_address(text);
    EXPECT_EQ(join_address(address.host, address.port), text);
  }
}

TEST(Address, AWrongOneSaysWhatIsMissing) {
  const auto said = [](const std::string& text) { return message_of<UsageError>([&] { parse_address(text); }); };
  EXPECT_EQ(said("10.0.0.1"), "'10.0.0.1' has no port; an address is HOST:PORT, for IPv6 [HOST]:PORT");
  EXPECT_THAT(said(":4000"), HasSubstr("has no host"));
  EXPECT_THAT(said("::1:4000"), HasSubstr("more than one colon"));
  EXPECT_THAT(said("h:0"), HasSubstr("port from 1 to 65535"));
  EXPECT_THAT(said("h:65536"), HasSubstr("port from 1 to 65535"));
  EXPECT_THAT(said("h:"), HasSubstr("port from 1 to 65535"));
  for (const char* text : {"", "[::1]", "[::1]4000", "[]:1", "[h]:1", "[1.2.3.4]:1", "a b:1", "h:-1", "h:+1", "1.2.3:1",
                           "1.2.3.999:1", "-h:1", "http://h:1", "[::1]:4:5", "[", "]:1", "[::g]:1"}) {
    EXPECT_THAT(said(text), HasSubstr("HOST:PORT")) << text;
  }
  EXPECT_LT(said(std::string(100000, 'x') + ":1").size(), 200U);
}

TEST(Address, WhoListensAtAnyPortMaySayZero) {
  EXPECT_EQ(parse_address("h:0", 0).port, 0);
  EXPECT_THAT(message_of<UsageError>([] { parse_address("h:-1", 0); }), HasSubstr("port from 0 to 65535"));
}

TEST(Address, KnowsWhatIsThisMachineAlone) {
  for (const char* own : {"127.0.0.1", "127.8.0.1", "localhost", "::1"}) EXPECT_TRUE(is_loopback(own)) << own;
  for (const char* open : {"0.0.0.0", "::", "10.0.0.1", "node-1", "127.example.org", "localhost.example.org", ""}) {
    EXPECT_FALSE(is_loopback(open)) << open;
  }
}

}  // namespace
}  // namespace lockstep::base
