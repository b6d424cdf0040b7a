#include "lab/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "base/suggest.h"

namespace lockstep::lab {

namespace {

using Kind = YamlNode::Kind;

}  // namespace

void Reader::check_map(const YamlNode& node, std::string_view what) const {
  if (!node.is(Kind::map)) fail(node, fmt::format("{} must be a map, not {}", what, base::describe(node)));
}

void Reader::check_map(const YamlNode& node, std::string_view what, const Names& allowed) const {
  check_map(node, what);
  for (const YamlNode& key : node.keys) {
    if (std::find(allowed.begin(), allowed.end(), key.text) != allowed.end()) continue;
    const std::string shown = base::shown(key.text);
    fail(key, fmt::format("unknown key '{}' of {}{}", shown, what, base::hint(shown, allowed)));
  }
}

const YamlNode* Reader::find(const YamlNode& map, std::string_view key) {
  const YamlNode* found = map.find(key);
  if (found == nullptr || found->is(Kind::null)) return nullptr;
  return found->is(Kind::scalar) && found->text == "off" ? nullptr : found;
}

std::string Reader::text(const YamlNode& node, std::string_view what) const {
  if (!node.is(Kind::scalar)) fail(node, fmt::format("{} must be text, not {}", what, base::describe(node)));
  if (node.text.find('\0') != std::string::npos) fail(node, fmt::format("{} must not hold a zero byte", what));
  return node.text;
}

std::string Reader::text_of(const YamlNode& map, std::string_view key) const {
  const YamlNode* found = find(map, key);
  return found == nullptr ? "" : text(*found, key);
}

bool Reader::flag_of(const YamlNode& map, std::string_view key) const {
  const YamlNode* found = map.find(key);
  if (found == nullptr || found->is(Kind::null)) return false;
  const std::string value = text(*found, key);
  if (value == "true" || value == "yes" || value == "on") return true;
  if (value == "false" || value == "no" || value == "off") return false;
  fail(*found, fmt::format("{}: '{}' is not allowed; it takes true or false", key, base::shown(value)));
}

int Reader::whole(const YamlNode& node, std::string_view what, int least, int most) const {
  const std::string value = text(node, what);
  int number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number < least || number > most) {
    fail(node, fmt::format("{}: '{}' is not allowed; it takes a whole number from {} to {}", what, base::shown(value),
                           least, most));
  }
  return number;
}

double Reader::number(const YamlNode& node, std::string_view what) const {
  const std::string value = text(node, what);
  double number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || !std::isfinite(number)) {
    fail(node, fmt::format("{}: '{}' is not allowed; it takes a number", what, base::shown(value)));
  }
  return number;
}

std::vector<const YamlNode*> Reader::one_or_more(const YamlNode& node, std::string_view what) const {
  std::vector<const YamlNode*> nodes;
  if (!node.is(Kind::list)) {
    nodes.push_back(&node);
  } else {
    for (const YamlNode& item : node.items) nodes.push_back(&item);
  }
  if (nodes.empty()) fail(node, fmt::format("{} is an empty list; give at least one value", what));
  for (const YamlNode* item : nodes) (void)text(*item, what);
  return nodes;
}

const std::vector<YamlNode>& Reader::list(const YamlNode& node, std::string_view what) const {
  if (!node.is(Kind::list)) fail(node, fmt::format("{} must be a list, not {}", what, base::describe(node)));
  if (node.items.empty()) fail(node, fmt::format("{} is an empty list", what));
  return node.items;
}

std::string Reader::simple_name(const YamlNode& node, std::string_view what) const {
  constexpr size_t kLongest = 60;
  const std::string value = text(node, what);
  const bool fits = !value.empty() && value.size() <= kLongest && value.front() != '-' &&
                    std::all_of(value.begin(), value.end(), [](unsigned char c) {
                      return c < 128 && (std::isalnum(c) != 0 || c == '-' || c == '_');
                    });
  if (!fits) {
    fail(node, fmt::format("{}: '{}' is not a name; it takes up to {} letters, digits, hyphens and underscores", what,
                           base::shown(value), kLongest));
  }
  return value;
}

}  // namespace lockstep::lab
