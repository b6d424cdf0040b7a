// The register that a launcher holds: its lines, its client over pipes, and the launcher's side.
#include "authority/launcher_register.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

#include "authority/launcher_lines.h"
#include "authority/race.h"
#include "launch/register_keeper.h"

namespace lockstep::authority {
namespace {

using launch::RegisterKeeper;
using launch::RoleEvent;
using Kind = RoleEvent::Kind;

cluster::Spec three() {
  cluster::Spec spec;
  spec.workers = {"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"};
  return spec;
}

TEST(LauncherLines, ComeBack) {
  const LauncherQuestion read{7, {}};
  EXPECT_EQ(question_line(read), "register 7 read");
  const Group next{4, 0xab, {{0, 1}, {2, 0xff}}};
  const std::string line = question_line({8, Swap{{3, 0xcd, {{1, 1}}}, next}});
  EXPECT_EQ(line, "register 8 swap 3 cd 4 ab 0:1,2:ff");
  const auto back = parse_question(line);
  ASSERT_TRUE(back && back->swap);
  EXPECT_EQ(back->swap->expected, (Group{3, 0xcd, {}}));
  EXPECT_EQ(back->swap->next, next);
  const auto answer = parse_answer(answer_line({9, {Outcome::lost, next, {}, true}}));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->number, 9U);
  EXPECT_EQ(answer->answer.outcome, Outcome::lost);
  EXPECT_EQ(answer->answer.group, next);
  EXPECT_TRUE(answer->answer.vacant);
}

TEST(LauncherLines, OtherLinesAreNone) {
  for (const char* line : {"", "register", "register 1", "register x read", "register 1 swap", "register 1 swap 0 0",
                           "register 1 swap 0 0 1 1", "{\"event\":\"log\"}", "registers 1 read"}) {
    EXPECT_FALSE(parse_question(line)) << line;
  }
  for (const char* line : {"register 1 won held", "register 1 won 1 1 0:1", "register 1 unanswered held 0 0 -",
                           "register 1 maybe held 0 0 -", "tell register 1 won held 0 0 -"}) {
    EXPECT_FALSE(parse_answer(line)) << line;
  }
}

/// A client whose lines the test answers with a keeper, or not at all.
struct Role {
  explicit Role(std::function<std::optional<std::string>(const std::string&)> answer) {
    EXPECT_EQ(pipe(pipe_.data()), 0);
    client = std::make_unique<LauncherRegister>(
        [this, answer = std::move(answer)](const std::string& line) {
          if (pipe_[1] < 0) return;
          const std::string text = "noise\n" + answer(line).value_or("") + "\n";
          EXPECT_EQ(::write(pipe_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
        },
        pipe_[0]);
  }
  ~Role() {
    client.reset();
    close(pipe_[0]);
    close_writer();
  }
  Role(const Role&) = delete;
  Role& operator=(const Role&) = delete;
  void close_writer() {
    if (pipe_[1] >= 0) close(std::exchange(pipe_[1], -1));
  }
  std::unique_ptr<LauncherRegister> client;
  std::array<int, 2> pipe_{-1, -1};
};

TEST(LauncherRegister, ItsRolesShareOneRegister) {
  base::Mutex mutex;
  RegisterKeeper keeper(three());
  const auto answer = [&](const std::string& line) {
    const base::MutexLock lock(mutex);
    return keeper.answer(line);
  };
  std::vector<std::unique_ptr<Role>> roles;
  std::vector<std::unique_ptr<Register>> clients;
  for (int i = 0; i < 3; ++i) {
    roles.push_back(std::make_unique<Role>(answer));
    clients.push_back(std::move(roles.back()->client));
  }
  expect_one_winner_each(clients, 200);
  clients.clear();
}

TEST(LauncherRegister, ALauncherThatIsGoneEndsTheWait) {
  Role role([](const std::string&) { return std::nullopt; });
  role.close_writer();
  const Answer answer = read_now(*role.client);
  EXPECT_EQ(answer.outcome, Outcome::refused);
  EXPECT_EQ(answer.failure.text, "the launcher is gone");
  Role silent([](const std::string&) { return std::nullopt; });
  silent.client->read([](const Answer&) {});  // its end cuts the wait short
}

TEST(RegisterKeeper, IsVacantOnceNoProcessOfTheLatestGroupLives) {
  RegisterKeeper keeper(three());
  const auto ask = [&](const LauncherQuestion& question) {
    return parse_answer(*keeper.answer(question_line(question)))->answer;
  };
  const auto event = [&](Kind kind, int worker, bool remote = false) {
    RoleEvent made;
    made.kind = kind;
    made.task = {cluster::Role::worker, worker};
    made.remote = remote;
    keeper.on_event(made);
  };
  for (const int worker : {0, 1, 2}) event(Kind::started, worker);
  EXPECT_TRUE(ask({1, {}}).vacant) << "there was no group";
  EXPECT_EQ(ask({2, Swap{{}, {1, 5, {{0, 1}, {1, 1}}}}}).outcome, Outcome::won);
  EXPECT_FALSE(ask({3, {}}).vacant);
  event(Kind::died, 0);
  EXPECT_FALSE(ask({4, {}}).vacant);
  event(Kind::died, 1);
  EXPECT_TRUE(ask({5, {}}).vacant);
  event(Kind::restarted, 0);
  EXPECT_FALSE(ask({6, {}}).vacant);
  event(Kind::died, 0, true);
  EXPECT_FALSE(ask({7, {}}).vacant) << "its connection ended; the process on the other host may end later";
}

}  // namespace
}  // namespace lockstep::authority
