// Runs the cases of a program of tests. --sources=a_test.cpp,b_test.cpp leaves those that these sources define: several
// tests of ctest share one program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>

namespace {

constexpr std::string_view kSources = "--sources=";

// Whether `file`, a path, ends with one of the paths in `sources`, which are separated by commas.
bool ends_with_one_of(std::string_view file, std::string_view sources) {
  while (!sources.empty()) {
    const std::string_view source = sources.substr(0, sources.find(','));
    sources.remove_prefix(std::min(source.size() + 1, sources.size()));
    const std::string_view name = source.substr(source.rfind('/') + 1);
    if (!name.empty() && file.substr(file.rfind('/') + 1) == name) return true;
  }
  return false;
}

// A filter with all cases of the sources; empty where there are none.
std::string filter_of(std::string_view sources) {
  std::string filter;
  const testing::UnitTest& program = *testing::UnitTest::GetInstance();
  for (int i = 0; i < program.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *program.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const testing::TestInfo& test = *suite.GetTestInfo(j);
      if (ends_with_one_of(test.file(), sources)) filter += std::string(suite.name()) + "." + test.name() + ":";
    }
  }
  return filter;
}

}  // namespace

int main(int count, char** arguments) {
  testing::InitGoogleMock(&count, arguments);
  for (int i = 1; i < count; ++i) {
    const std::string_view argument = arguments[i];
    if (!argument.starts_with(kSources)) continue;
    const std::string filter = filter_of(argument.substr(kSources.size()));
    if (filter.empty()) {
      std::fprintf(stderr, "no cases in %s\n", arguments[i]);
      return 2;
    }
    // A filter given by the user or by a death test's parent process has precedence.
    if (GTEST_FLAG_GET(filter) == "*") GTEST_FLAG_SET(filter, filter);
  }
  return RUN_ALL_TESTS();
}
