// The parts of docs/ that are made from the code are as the code is now.
#include "e2e/support.h"

namespace lockstep::testing {
namespace {

std::string source_file(const std::string& name) {
  const char* root = std::getenv("LOCKSTEP_SOURCE");  // NOLINT(concurrency-mt-unsafe)
  return get_file(std::string(root) + "/" + name);
}

class Docs : public ProgramTest {};

TEST_F(Docs, OpsAreThoseOfTheTable) {
  EXPECT_EQ(source_file("docs/ops.md"), succeed({"docs", "ops"}).out)
      << "renew it: build/release/lockstep docs ops > docs/ops.md";
}

TEST_F(Docs, SettingsAreThoseOfTheTable) {
  EXPECT_THAT(source_file("docs/command-line.md"), HasSubstr(succeed({"docs", "settings"}).out))
      << "renew the part below 'All settings' with: build/release/lockstep docs settings";
}

TEST_F(Docs, EveryCommandIsMentioned) {
  const std::string page = source_file("docs/command-line.md");
  for (const char* command : {"train", "eval", "predict", "data list", "data get", "models", "describe", "info"}) {
    EXPECT_THAT(page, HasSubstr("lockstep " + std::string(command)));
  }
}

}  // namespace
}  // namespace lockstep::testing
