// Profiles of machines as files, and what a plan takes from them.
#include "plan/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/error.h"
#include "plan/basis.h"

namespace lockstep::plan {
namespace {

using ::testing::HasSubstr;

Profile profile_of_a_test() {
  Profile profile;
  profile.host = "north";
  profile.cores = 4;
  profile.memory_bytes = 8e9;
  profile.costs.message = 3e-5;
  ModelProfile model{.model = "lenet", .tensors = {{100, 1}, {200, 0.25}}, .memory_fixed = 1e6, .memory_each = 10};
  for (const int threads : {1, 4}) {
    for (const int batch : {1, 8, 64}) {
      const double each = 1e-4 / threads;
      model.points.push_back({batch, threads, 1e-4 + each * batch, 2e-4 + 2 * each * batch, 5e-5, 0.1});
    }
  }
  profile.models.push_back(model);
  return profile;
}

TEST(Profile, IsReadBackAsItWasWritten) {
  const Profile profile = profile_of_a_test();
  const Profile again = parse_profile(to_json(profile), "p.json");
  EXPECT_EQ(again.host, "north");
  EXPECT_EQ(again.costs.message, 3e-5);
  ASSERT_NE(again.model("lenet"), nullptr);
  EXPECT_EQ(again.model("lenet")->points.size(), 6);
  EXPECT_EQ(again.model("lenet")->tensors[1].announced, 0.25);
  EXPECT_EQ(again.model("lr"), nullptr);
  EXPECT_EQ(to_json(again), to_json(profile));
}

TEST(Profile, GivesTheFixedPartOfAPassAndThatOfAnExample) {
  const Profile profile = profile_of_a_test();
  for (const int threads : {1, 4}) {
    const Basis basis = basis_of(profile, profile.models[0], threads);
    EXPECT_NEAR(basis.forward.fixed, 1e-4, 1e-7);
    EXPECT_NEAR(basis.forward.each, 1e-4 / threads, 1e-8);
    EXPECT_NEAR(basis.backward.of(100), 2e-4 + 0.02 / threads, 1e-6);
    EXPECT_EQ(basis.threads, threads);
  }
  EXPECT_EQ(basis_of(profile, profile.models[0], 3).threads, 4) << "the nearest that was measured";
}

TEST(Profile, OfAnotherMachineIsSaid) {
  Profile profile = profile_of_a_test();
  profile.isa = "avx2";
  EXPECT_EQ(note_of_other_machine(profile, "p.json", {"north", "avx2", 4}), "");
  EXPECT_EQ(
      note_of_other_machine(profile, "p.json", {"south", "avx512", 1}),
      "p.json is a profile of north (4 cores, avx2), not of this machine, south (1 core, avx512): the plan is for "
      "nodes like that one.");
  EXPECT_NE(note_of_other_machine(profile, "p.json", {"north", "avx2", 8}), "");
}

TEST(Profile, DamagedOnesAreOneLine) {
  const std::string whole = to_json(profile_of_a_test());
  for (size_t length = 0; length + 2 < whole.size(); length += 7) {
    EXPECT_THROW(parse_profile(whole.substr(0, length), "p.json"), DataError);
  }
  const auto message = [&](const std::string& from, const std::string& to) {
    std::string text = whole;
    text.replace(text.find(from), from.size(), to);
    try {
      parse_profile(text, "p.json");
    } catch (const DataError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message("\"cores\": 4", "\"cores\": 0"), "p.json: not a profile: 'cores' is out of range");
  EXPECT_EQ(message("\"cores\": 4", "\"cores\": 1e12"), "p.json: not a profile: 'cores' is out of range");
  EXPECT_EQ(message("\"threads\": 4", "\"threads\": 1e12"), "p.json: not a profile: 'threads' is out of range");
  EXPECT_EQ(message("\"host\": \"north\"", "\"host\": 3"), "p.json: not a profile: 'host' is no text");
  EXPECT_THAT(message("\"lockstep_profile\": 1", "\"lockstep_profile\": 9"), HasSubstr("another version"));
  EXPECT_THAT(message("\"points\"", "\"dots\""), HasSubstr("'points' is no list"));
}

}  // namespace
}  // namespace lockstep::plan
