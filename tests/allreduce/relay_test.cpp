// Members of large clusters that reach each other through a tree, played without network, threads or clock: at every
// size, and through deaths, broken connections, restarts and moves in random order.
#include "allreduce/elastic/relay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <random>

#include "allreduce/elastic/relay_messages.h"
#include "lockstep/error.h"

namespace lockstep::allreduce::elastic {
namespace {

constexpr uint16_t kAnyKind = static_cast<uint16_t>(Kind::refusal);

class Cluster {
 public:
  struct View {
    MemberStatus status;
    std::string why;
    bool here = false;
    bool dead = false;
  };
  struct Process {
    std::unique_ptr<Relay> relay;
    uint64_t incarnation = 0;
    MemberStatus status;
    std::map<int, View> views;
    std::vector<std::pair<int, std::string>> received;
    std::set<int> links;
    size_t most_links = 0;
  };

  Cluster(int members, uint64_t seed) : random_(seed), processes_(static_cast<size_t>(members)) {}

  Process& at(int member) { return processes_[static_cast<size_t>(member)]; }
  [[nodiscard]] int count() const { return static_cast<int>(processes_.size()); }
  [[nodiscard]] bool alive(int member) const { return processes_[static_cast<size_t>(member)].relay != nullptr; }

  void start(int member) {
    Process& process = at(member) = {};
    process.relay = std::make_unique<Relay>(member, count());
    process.incarnation = ++incarnations_;
    process.status.incarnation = process.incarnation;
    tell(member, 0);
  }
  void kill(int member) {
    for (const int peer : std::set<int>(at(member).links)) cut(member, peer, "connection closed");
    at(member).relay.reset();
  }
  void tell(int member, uint64_t step) {
    at(member).status.step = step;
    at(member).relay->set_status(at(member).status);
    collect(member);
  }
  void post(int from, const std::vector<int>& to, const std::string& text) {
    at(from).relay->post(to, kAnyKind, text);
    collect(from);
  }
  /// Ends a connection; what is on the way is lost. `why` empty: one of the two moves.
  void cut(int a, int b, const std::string& why) {
    for (const auto& [one, other] : {std::pair(a, b), std::pair(b, a)}) {
      on_the_way_.erase({one, other});
      if (at(one).links.erase(other) == 0) continue;
      at(one).relay->link_down(other, why, time);
      collect(one);
    }
  }

  /// Lets `seconds` pass, in which members look for parents and messages arrive in any order between links.
  void pass(double seconds) {
    const double until = time + seconds;
    for (; time < until; time += 0.1) {
      for (int member = 0; member < count(); ++member) {
        if (!alive(member)) continue;
        at(member).relay->tick(time);
        collect(member);
        seek(member);
      }
      deliver_all();
    }
  }
  void deliver_some(size_t most) {
    while (most-- > 0 && !on_the_way_.empty()) {
      auto which = on_the_way_.begin();
      std::advance(which, static_cast<long>(random_() % on_the_way_.size()));
      deliver(which);
    }
  }
  void deliver_all() {
    while (!on_the_way_.empty()) deliver_some(100);
  }

  double time = 0;

 private:
  using Queue = std::map<std::pair<int, int>, std::deque<std::pair<Kind, std::string>>>;

  void deliver(Queue::iterator which) {
    const auto [from, to] = which->first;
    const auto [kind, bytes] = which->second.front();
    which->second.pop_front();
    if (which->second.empty()) on_the_way_.erase(which);
    at(to).relay->take(from, decode_relayed(kind, bytes, from, count()), time);
    collect(to);
  }

  void seek(int member) {
    const std::optional<int> next = at(member).relay->next_try(time);
    if (!next) return;
    EXPECT_LT(*next, member);
    const Relay::Room room = alive(*next) ? at(*next).relay->room_for(member) : Relay::Room{};
    if (room.drop >= 0) cut(*next, room.drop, "");  // lower numbers come first
    if (!room.granted) {
      at(member).relay->tried(*next, time);
      if (!alive(*next)) at(member).relay->confirm_dead(*next);
      return collect(member);
    }
    const int parent = at(member).relay->parent();
    if (parent >= 0) {
      // What is on the way is delivered first, as a parent that is left sends it.
      at(member).relay->link_down(parent, "", time);
      collect(member);
      flush(member, parent);
      at(parent).relay->link_down(member, "", time);
      flush(parent, member);
      at(member).links.erase(parent);
      at(parent).links.erase(member);
      collect(parent);
    }
    for (const auto& [one, other] : {std::pair(member, *next), std::pair(*next, member)}) {
      at(one).links.insert(other);
      at(one).most_links = std::max(at(one).most_links, at(one).links.size());
      at(one).relay->link_up(other, time);
      collect(one);
    }
  }

  void flush(int from, int to) {
    for (auto which = on_the_way_.find({from, to}); which != on_the_way_.end(); which = on_the_way_.find({from, to})) {
      deliver(which);
    }
  }

  void collect(int member) {
    Process& process = at(member);
    for (auto& [peer, frame] : process.relay->take_frames()) {
      if (process.links.contains(peer)) on_the_way_[{member, peer}].emplace_back(kind_of(frame), encode(frame));
    }
    for (const News& news : process.relay->take_news()) hear(process, news);
  }

  static void hear(Process& process, const News& news) {
    View& view = process.views[news.member];
    if (const auto* const arrived = std::get_if<Arrived>(&news.what)) {
      EXPECT_FALSE(view.here) << "it arrives twice";
      view = {arrived->status, "", true, false};
    } else if (const auto* const told = std::get_if<Told>(&news.what)) {
      EXPECT_TRUE(view.here && view.status.incarnation == told->status.incarnation);
      EXPECT_GE(told->status.step, view.status.step) << "an older status came after a newer one";
      view.status = told->status;
    } else if (const auto* const lost = std::get_if<Lost>(&news.what)) {
      EXPECT_TRUE(view.here) << "it is lost twice";
      EXPECT_FALSE(lost->why.empty());
      view.here = false;
      view.why = lost->why;
    } else if (std::holds_alternative<Dead>(news.what)) {
      EXPECT_FALSE(view.here) << "the dead are lost first";
      view.dead = true;
    } else {
      EXPECT_TRUE(view.here) << "a message of one who is not here";
      process.received.emplace_back(news.member, std::get<Received>(news.what).content);
    }
  }

  std::mt19937_64 random_;
  std::vector<Process> processes_;
  Queue on_the_way_;
  uint64_t incarnations_ = 0;
};

std::string small_message() { return encode(Message(Refusal{7})); }

/// All that live see each other with the latest status, and nobody else.
void expect_all_see_all(Cluster& cluster) {
  for (int member = 0; member < cluster.count(); ++member) {
    if (!cluster.alive(member)) continue;
    for (int other = 0; other < cluster.count(); ++other) {
      if (other == member) continue;
      const Cluster::View& view = cluster.at(member).views[other];
      ASSERT_EQ(view.here, cluster.alive(other)) << member << " about " << other << " of " << cluster.count();
      if (view.here) {
        ASSERT_EQ(view.status, cluster.at(other).status) << member << " about " << other;
      }
    }
  }
}

void expect_messages_arrive(Cluster& cluster, int from) {
  std::vector<int> all;
  for (int member = 0; member < cluster.count(); ++member) {
    if (member != from && cluster.alive(member)) all.push_back(member);
    cluster.at(member).received.clear();
  }
  cluster.post(from, all, small_message());
  cluster.deliver_all();
  for (const int member : all) {
    ASSERT_EQ(cluster.at(member).received, (std::vector<std::pair<int, std::string>>{{from, small_message()}}))
        << member;
  }
}

TEST(Relay, MembersOfEverySizeFindEachOtherOverFewConnections) {
  for (int size = 1; size <= 130; size += size < 20 ? 1 : 7) {
    Cluster cluster(size, static_cast<uint64_t>(size));
    std::vector<int> order;
    for (int member = 0; member < size; ++member) order.push_back(member);
    std::mt19937_64 random(static_cast<uint64_t>(size));
    std::shuffle(order.begin(), order.end(), random);
    for (const int member : order) {
      cluster.start(member);
      if (random() % 4 == 0) cluster.pass(0.3);
    }
    cluster.pass(8);
    expect_all_see_all(cluster);
    size_t links = 0;
    for (int member = 0; member < size; ++member) {
      EXPECT_LE(cluster.at(member).most_links, static_cast<size_t>(kMostChildren + 1));
      EXPECT_LE(cluster.at(member).links.size(), static_cast<size_t>(kChildren + 1)) << "all have their best parents";
      links += cluster.at(member).links.size();
    }
    EXPECT_EQ(links, 2 * static_cast<size_t>(size - 1)) << "a tree";
  }
}

TEST(Relay, StatusesAndMessagesReachAll) {
  Cluster cluster(40, 1);
  for (int member = 0; member < 40; ++member) cluster.start(member);
  cluster.pass(3);
  for (const int member : {0, 7, 39}) cluster.tell(member, 12);
  cluster.deliver_all();
  expect_all_see_all(cluster);
}

TEST(Relay, ADeathIsNewsForAllAndThoseBehindItAreNotLost) {
  Cluster cluster(40, 2);
  for (int member = 0; member < 40; ++member) cluster.start(member);
  cluster.pass(3);
  for (int member = 0; member < 40; ++member) cluster.at(member).received.clear();
  for (const int dead : {1, 0}) {
    cluster.kill(dead);
    cluster.deliver_all();
    for (int member = 2; member < 40; ++member) {
      EXPECT_FALSE(cluster.at(member).views[dead].here) << member;
      EXPECT_EQ(cluster.at(member).views[dead].why, "connection closed") << member;
      for (int other = 2; other < 40; ++other) {
        EXPECT_TRUE(other == member || cluster.at(member).views[other].here) << member << " lost " << other;
      }
    }
    // Messages to those that are cut off wait until there is a way.
    cluster.post(2, {5, 20, 38}, small_message());
    cluster.pass(3);
    for (const int to : {5, 20, 38}) {
      EXPECT_EQ(cluster.at(to).received.size(), 1U) << to;
      cluster.at(to).received.clear();
    }
    expect_all_see_all(cluster);
    for (int member = 2; member < 40; ++member) EXPECT_TRUE(cluster.at(member).views[dead].dead) << member;
  }
}

TEST(Relay, AMemberThatIsTakenForDeadIsBackWithoutARestart) {
  Cluster cluster(14, 4);
  for (int member = 0; member < 14; ++member) cluster.start(member);
  cluster.pass(3);
  // A firewall answers in the place of worker 0, and of worker 13, whose parent loses it at the same time.
  cluster.cut(1, 5, "connection reset");
  cluster.at(5).relay->confirm_dead(0);
  cluster.cut(4, 13, "no heartbeat for 5.0 s");
  cluster.at(4).relay->confirm_dead(13);
  cluster.pass(6);
  expect_all_see_all(cluster);
}

TEST(Relay, WithoutAnyWayAMemberIsLostAfterAWhile) {
  Cluster cluster(12, 3);
  for (int member = 0; member < 12; ++member) cluster.start(member);
  cluster.pass(3);
  Relay& relay = *cluster.at(0).relay;
  const double cut = cluster.time;
  relay.link_down(1, "no heartbeat for 5.0 s", cut);
  const auto lost = [](std::vector<News> all) {
    std::map<int, std::string> found;
    for (const News& news : all) {
      if (const auto* const what = std::get_if<Lost>(&news.what)) found[news.member] = what->why;
    }
    return found;
  };
  EXPECT_EQ(lost(relay.take_news()), (std::map<int, std::string>{{1, "no heartbeat for 5.0 s"}}));
  relay.tick(cut + kGrace - 0.1);
  EXPECT_TRUE(relay.take_news().empty());
  relay.tick(cut + kGrace + 0.1);
  EXPECT_EQ(
      lost(relay.take_news()),
      (std::map<int, std::string>{{4, "the way to it broke"}, {5, "the way to it broke"}, {6, "the way to it broke"}}));
}

std::shared_ptr<const KnownStatus> known(const MemberStatus& status) {
  return std::make_shared<const KnownStatus>(KnownStatus{status, encode(Message(status))});
}

/// Says that `member` can be reached through neighbour 1.
Sightings behind_one(int member, uint64_t sequence) {
  MemberStatus status;
  status.incarnation = 5;
  return {{{member, sequence, known(status), {1, member}}}};
}

TEST(Relay, WhatWaitsForMembersThatAreCutOffHasABoundInBytes) {
  Relay relay(0, 12);
  relay.link_up(1, 100);
  for (const int member : {4, 5}) relay.take(1, behind_one(member, 1), 100);
  relay.link_down(1, "no heartbeat for 5.0 s", 110);
  const size_t each = size_t{1} << 20;
  for (char letter = 'a'; letter <= 'z'; ++letter) relay.post({4, 5}, kAnyKind, std::string(each, letter));
  relay.take_frames();
  relay.link_up(1, 111);
  for (const int member : {4, 5}) {
    relay.take(1, behind_one(member, 2), 111);
    std::string letters;
    for (const auto& [peer, frame] : relay.take_frames()) {
      const auto* const parcel = std::get_if<Parcel>(&frame);
      if (parcel == nullptr) continue;
      EXPECT_EQ(parcel->to, std::vector<int>{member});
      letters += parcel->content.front();
    }
    EXPECT_EQ(letters, "lmnopqrstuvwxyz") << "the newest, in order";
  }
  relay.post({4, 4}, kAnyKind, "once");
  const auto frames = relay.take_frames();
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(std::get<Parcel>(frames.front().second).to, std::vector<int>{4});
}

TEST(Relay, WhatWaitsForANeighbourIsJoinedAndOnlyTheLatestStatusIsSent) {
  Relay relay(0, 12);
  relay.link_up(1, 100);
  relay.link_up(2, 100);
  relay.take_frames();
  for (uint64_t sequence = 1; sequence <= 9; ++sequence) {
    for (const int member : {4, 5}) relay.take(1, behind_one(member, sequence), 100);
  }
  EXPECT_EQ(relay.pending(), std::vector<int>{2});
  const std::vector<RelayFrame> frames = relay.take_frames(2);
  ASSERT_EQ(frames.size(), 1U);
  const std::vector<Sighting>& all = std::get<Sightings>(frames.front()).all;
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].sequence, 9U);
  EXPECT_EQ(all[1].sequence, 9U);
  relay.take(1, behind_one(4, 10), 100);
  relay.take(1, Departures{{{4, 5, "connection closed", false}}}, 100);
  relay.take(1, behind_one(4, 11), 100);
  EXPECT_EQ(relay.take_frames(2).size(), 3U) << "the order of coming and going is kept";
}

TEST(Relay, AParentThatEndsEveryConnectionIsTriedMoreRarely) {
  Relay relay(1, 12);
  double time = 100;
  relay.tried(0, time - 10);
  int tries = 0;
  for (; time < 160; time += 0.01) {
    if (relay.next_try(time) != 0) continue;
    ++tries;
    relay.link_up(0, time);
    relay.link_down(0, "it sent an invalid message", time);
  }
  EXPECT_LT(tries, 40);
  EXPECT_GT(tries, 20);
  relay.link_up(0, time);
  relay.link_down(0, "connection closed", time + 60);
  EXPECT_EQ(relay.next_try(time + 60), std::nullopt);
  EXPECT_EQ(relay.next_try(time + 60.3), 0) << "the pause is short again";
}

TEST(Relay, InRandomHistoriesAllFindEachOtherOnceTheFaultsEnd) {
  for (uint64_t seed = 1; seed <= 60 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const int size = 9 + static_cast<int>(random() % 40);
    const auto anyone = [&] { return static_cast<int>(random() % static_cast<uint64_t>(size)); };
    Cluster cluster(size, seed);
    for (int member = 0; member < size; ++member) {
      if (random() % 4 > 0) cluster.start(member);
    }
    for (uint64_t i = 1; i < 150; ++i) {
      const int member = anyone();
      switch (random() % 6) {
        case 0:
          if (cluster.alive(member) && random() % 3 == 0) cluster.kill(member);
          break;
        case 1:
          if (!cluster.alive(member)) cluster.start(member);
          break;
        case 2:
          if (cluster.alive(member) && !cluster.at(member).links.empty()) {
            cluster.cut(member, *cluster.at(member).links.begin(), "connection reset");
          }
          break;
        case 3:
          if (cluster.alive(member)) cluster.tell(member, i);
          break;
        case 4:
          cluster.deliver_some(random() % 50);
          break;
        default:
          cluster.pass(0.1 * static_cast<double>(random() % 10));
      }
    }
    cluster.pass(20);
    expect_all_see_all(cluster);
    for (int member = 0; member < size; ++member) {
      if (!cluster.alive(member)) continue;
      expect_messages_arrive(cluster, member);
      break;
    }
  }
}

TEST(Relay, FramesSurviveTheWire) {
  MemberStatus status;
  status.incarnation = 5;
  status.earlier = true;
  const Sighting sighting{3, 9, known(status), {1, 4, 3}};
  const RelayFrame frame = decode_relayed(Kind::sightings, encode(RelayFrame(Sightings{{sighting}})), 1, 12);
  const Sighting& read = std::get<Sightings>(frame).all.at(0);
  EXPECT_EQ(read.member, 3);
  EXPECT_EQ(read.sequence, 9U);
  EXPECT_EQ(read.known->status, status);
  EXPECT_EQ(read.path, sighting.path);
}

TEST(Relay, AReasonThatIsCutCanBePassedOn) {
  const std::string why = std::string(499, 'a') + "\u00e4\u00e4";
  RelayFrame frame = Departures{{{3, 1, why, false}}};
  for (int hops = 0; hops < 2; ++hops) frame = decode_relayed(Kind::departures, encode(frame), 1, 12);
  EXPECT_EQ(std::get<Departures>(frame).all.at(0).why.substr(0, 499), why.substr(0, 499));
}

TEST(Relay, FramesThatMakeNoSenseAreRefused) {
  const auto refused = [](const RelayFrame& frame, int from) {
    EXPECT_THROW(decode_relayed(kind_of(frame), encode(frame), from, 12), DataError);
  };
  const auto status = known({});
  const auto nonsense = std::make_shared<const KnownStatus>(KnownStatus{{}, "nonsense"});
  refused(Sightings{{{12, 1, status, {1, 12}}}}, 1);
  refused(Sightings{{{3, 1, status, {}}}}, 1);
  refused(Sightings{{{3, 1, status, {2, 3}}}}, 1);
  refused(Sightings{{{3, 1, status, {1, 4}}}}, 1);
  refused(Sightings{{{3, 1, nonsense, {1, 3}}}}, 1);
  refused(Departures{{{-1, 1, "", false}}}, 1);
  refused(Parcel{1, 1, {55}, kAnyKind, small_message()}, 1);
  refused(Parcel{1, 1, {5, 6, 5}, kAnyKind, small_message()}, 1);
  refused(Parcel{1, 1, {0}, 999, small_message()}, 1);
  refused(Parcel{1, 1, {5}, kAnyKind, "nonsense"}, 1);  // whoever passes it on would be blamed
  EXPECT_THROW(decode_relayed(Kind::follow, "", 1, 12), DataError);
}

}  // namespace
}  // namespace lockstep::allreduce::elastic
