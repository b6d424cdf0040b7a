// A member's reaction to processes that are not members, or misbehave.
#include <gmock/gmock.h>

#include "allreduce/elastic/messages.h"
#include "allreduce/elastic/relay_messages.h"
#include "allreduce/elastic_support.h"
#include "cluster.pb.h"
#include "wire/frames.h"
#include "wire/refusal.h"

namespace lockstep::allreduce {
namespace {

using ::testing::AllOf;
using testing::Cluster;
using testing::eventually;
using ::testing::Field;
using ::testing::HasSubstr;
using wire::RefusalKind;

auto IsRefusal(RefusalKind kind, const std::string& text) {
  return AllOf(Field(&wire::RefusalReason::kind, kind), Field(&wire::RefusalReason::text, HasSubstr(text)));
}

/// A peer that sends messages which no member sends.
class Stranger : public Cluster {
 protected:
  std::unique_ptr<transport::Stream> connected(int member) {
    return transport::testing::connected(spec.address(spec.members()[static_cast<size_t>(member)]));
  }
  wire::Hello hello(const std::string& role, int member) {
    wire::Hello made;
    made.set_protocol(elastic::kProtocol);
    made.set_role(role);
    made.set_member(member);
    made.set_incarnation(99);
    made.set_job("the job");
    return made;
  }
  /// Asks again if the connection ended before the question was sent, as on a slow machine.
  wire::RefusalReason answer(const transport::Header& header, const std::string& bytes) {
    wire::RefusalReason said;
    for (int tries = 0; tries < 5; ++tries) {
      const auto stream = connected(0);
      static_cast<void>(wire::send_text(*stream, header, bytes));
      const base::Result<transport::Frame> frame = stream->read();
      said = frame ? wire::read_refusal(frame.value())
                   : wire::RefusalReason{RefusalKind::other, frame.failure().message()};
      if (frame) break;
    }
    return said;
  }
};

TEST_F(Stranger, IsRefusedWithAReasonAndDisturbsNobody) {
  make(2);
  start_all();
  ASSERT_TRUE(trains({0, 1}));
  using elastic::header;
  using elastic::Kind;
  EXPECT_THAT(answer(header(Kind::hello), "\xff\xff\xff"), IsRefusal(RefusalKind::message, "damaged"));
  EXPECT_THAT(answer(header(Kind::proposal), ""), IsRefusal(RefusalKind::message, "is not a greeting"));
  EXPECT_THAT(answer({.kind = 1}, ""), IsRefusal(RefusalKind::message, "is not a greeting"));
  wire::Hello other = hello("worker:1", 1);
  other.set_protocol(77);
  EXPECT_THAT(answer(header(Kind::hello), other.SerializeAsString()), IsRefusal(RefusalKind::protocol, "protocol 77"));
  EXPECT_THAT(answer(header(Kind::hello), hello("worker:1", 0).SerializeAsString()),
              IsRefusal(RefusalKind::role, "not 0"));
  EXPECT_THAT(answer(header(Kind::hello), hello("worker:0", 0).SerializeAsString()),
              IsRefusal(RefusalKind::role, "does not connect"));
  EXPECT_THAT(answer(header(Kind::hello), hello("worker:7", -1).SerializeAsString()),
              IsRefusal(RefusalKind::role, "does not connect"));
  EXPECT_THAT(answer(header(Kind::hello), hello("nobody", -1).SerializeAsString()),
              IsRefusal(RefusalKind::message, "nobody"));
  EXPECT_TRUE(advances(0));
  EXPECT_EQ(at(0).number(), 1U);
}

TEST_F(Stranger, ThatActsAsAMemberAndSendsNonsenseIsGivenUp) {
  make(3);
  change = [](ElasticOptions& o) { o.start_wait = 0.5; };
  start(0);
  start(1);
  ASSERT_TRUE(trains({0, 1}));
  const std::vector<std::pair<elastic::Kind, std::string>> nonsense = {
      {elastic::Kind::status, "\x08"},
      {elastic::Kind::decision, "xyz"},
      {elastic::Kind::acceptance, elastic::encode(elastic::Acceptance{})},
      {elastic::Kind::welcome, ""},
  };
  for (const auto& [kind, bytes] : nonsense) {
    const auto stream = connected(0);
    ASSERT_TRUE(wire::send(*stream, elastic::header(elastic::Kind::hello), hello("worker:2", 2)));
    ASSERT_TRUE(stream->read());
    static_cast<void>(wire::send_text(*stream, elastic::header(kind), bytes));
    while (stream->read()) {
    }
  }
  EXPECT_TRUE(eventually([&] { return at(0).lines.has(name(2) + " sent an invalid message"); }));
  EXPECT_TRUE(advances(0));
}

TEST_F(Stranger, ThatActsAsANeighbourInALargeClusterAndSendsNonsenseIsGivenUp) {
  make(12);
  change = [](ElasticOptions& options) { options.start_wait = 600; };
  start(0);
  using elastic::Kind;
  const std::string status = elastic::encode(elastic::Message(elastic::MemberStatus{}));
  const auto known = std::make_shared<const elastic::KnownStatus>(elastic::KnownStatus{{}, status});
  const std::vector<std::pair<Kind, std::string>> nonsense{
      {Kind::status, status},
      {Kind::sightings, "xyz"},
      {Kind::sightings, encode(elastic::RelayFrame(elastic::Sightings{{{5, 1, known, {2, 5}}}}))},
      {Kind::sightings, encode(elastic::RelayFrame(elastic::Sightings{{{1, 1, known, {1}}}}))},
      {Kind::departures, encode(elastic::RelayFrame(elastic::Departures{{{12, 1, "", false}}}))},
      {Kind::parcel, encode(elastic::RelayFrame(elastic::Parcel{1, 1, {0}, 7, "xyz"}))},
      {Kind::follow, ""},
  };
  for (const auto& [kind, bytes] : nonsense) {
    const auto stream = connected(0);
    ASSERT_TRUE(wire::send(*stream, elastic::header(Kind::hello), hello("worker:1", 1)));
    ASSERT_TRUE(stream->read());
    static_cast<void>(wire::send_text(*stream, elastic::header(kind), bytes));
    while (stream->read()) {
    }
  }
  EXPECT_TRUE(eventually([&] { return at(0).lines.has(name(1) + " sent an invalid message: frame of unknown kind"); }));
  EXPECT_TRUE(at(0).lines.has(name(1) + " sent an invalid message: the path of 2 steps to member 5 is none"));
  EXPECT_TRUE(at(0).lines.has(name(1) + " sent an invalid message: the status comes from another process"));
  EXPECT_TRUE(at(0).lines.has(name(1) + " sent an invalid message: member 12 does not exist"));
}

TEST_F(Stranger, ThatSaysNothingIsGivenUp) {
  make(1);
  start_all();
  ASSERT_TRUE(trains({0}));
  const auto stream = connected(0);
  const base::Result<transport::Frame> frame = stream->read();
  ASSERT_FALSE(frame);
  EXPECT_TRUE(advances(0));
}

TEST_F(Stranger, ThatIsAMemberWithoutHeartbeatsIsGivenUpAndNamed) {
  make(2);
  start(0);
  const auto stream = connected(0);
  ASSERT_TRUE(wire::send(*stream, elastic::header(elastic::Kind::hello), hello("worker:1", 1)));
  elastic::MemberStatus status;
  status.incarnation = 99;
  ASSERT_TRUE(wire::send_text(*stream, elastic::header(elastic::Kind::status), elastic::encode(status)));
  while (stream->read()) {
  }
  start(1);
  EXPECT_TRUE(trains({0, 1}));
}

}  // namespace
}  // namespace lockstep::allreduce
