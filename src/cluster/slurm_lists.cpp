// Slurm's compressed lists.
#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <string_view>

#include "base/address.h"
#include "base/yaml_tree.h"
#include "cluster/launcher_environment.h"
#include "lockstep/error.h"

namespace lockstep::cluster {
namespace {

constexpr size_t kMostDigits = 9;

[[noreturn]] void reject_nodes(std::string_view text, const char* what) {
  throw UsageError(fmt::format("'{}' {}; a node list is like node[01-03,7],gpu1", base::shown(text), what));
}

/// Parses digits that fit into an int; returns -1 for everything else.
int number_of(std::string_view digits) {
  if (digits.empty() || digits.size() > kMostDigits) return -1;
  int number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  return whole && digits[0] != '-' ? number : -1;
}

/// Expands "01-03,7" to 01, 02, 03, 7, keeping the width.
std::vector<std::string> expand_numbers(std::string_view list, std::string_view whole) {
  std::vector<std::string> numbers;
  while (true) {
    const size_t comma = list.find(',');
    const std::string_view range = list.substr(0, comma);
    const size_t dash = range.find('-');
    const std::string_view low_text = range.substr(0, dash);
    const int low = number_of(low_text);
    const int high = dash == std::string_view::npos ? low : number_of(range.substr(dash + 1));
    if (low < 0 || high < low) reject_nodes(whole, "has an invalid range");
    if (high - low >= kMostTasks || numbers.size() > kMostTasks) reject_nodes(whole, "has too many nodes");
    for (int number = low; number <= high; ++number) numbers.push_back(fmt::format("{:0{}}", number, low_text.size()));
    if (comma == std::string_view::npos) return numbers;
    list.remove_prefix(comma + 1);
  }
}

/// Expands one name with its brackets, as in rack[1-2]node[1-4].
std::vector<std::string> expand_name(std::string_view name, std::string_view whole) {
  std::vector<std::string> names{""};
  while (!name.empty()) {
    const size_t open = name.find('[');
    for (std::string& made : names) made += name.substr(0, open);
    if (open == std::string_view::npos) break;
    const size_t close = name.find(']', open);
    if (close == std::string_view::npos) reject_nodes(whole, "has no ']' for its '['");
    const std::vector<std::string> numbers = expand_numbers(name.substr(open + 1, close - open - 1), whole);
    if (names.size() * numbers.size() > kMostTasks) reject_nodes(whole, "has too many nodes");
    std::vector<std::string> longer;
    for (const std::string& made : names) {
      for (const std::string& number : numbers) longer.push_back(made + number);
    }
    names = std::move(longer);
    name.remove_prefix(close + 1);
  }
  return names;
}

/// Returns the end of the first name: a comma outside brackets.
size_t end_of_name(std::string_view text) {
  bool inside = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[') inside = true;
    if (text[i] == ']') inside = false;
    if (text[i] == ',' && !inside) return i;
  }
  return text.size();
}

}  // namespace

std::vector<std::string> expand_node_list(const std::string& text) {
  std::vector<std::string> nodes;
  std::string_view rest = text;
  while (true) {
    const size_t end = end_of_name(rest);
    for (std::string& name : expand_name(rest.substr(0, end), text)) {
      if (!base::is_host(name)) reject_nodes(text, "has an invalid host name");
      nodes.push_back(std::move(name));
    }
    if (nodes.size() > kMostTasks) reject_nodes(text, "has too many nodes");
    if (end == rest.size()) return nodes;
    rest.remove_prefix(end + 1);
  }
}

std::vector<int> expand_task_counts(const std::string& text) {
  std::vector<int> counts;
  std::string_view rest = text;
  while (true) {
    const size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    const size_t open = item.find("(x");
    const int count = number_of(item.substr(0, open));
    const bool repeated = open != std::string_view::npos;
    const int times = !repeated             ? 1
                      : item.ends_with(')') ? number_of(item.substr(open + 2, item.size() - open - 3))
                                            : -1;
    if (count < 0 || count > kMostTasks || times < 1 || counts.size() + static_cast<size_t>(times) > kMostTasks) {
      throw UsageError(fmt::format("'{}' is not a list of task counts, like 2(x3),1", base::shown(text)));
    }
    counts.insert(counts.end(), static_cast<size_t>(times), count);
    if (comma == std::string_view::npos) return counts;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace lockstep::cluster
