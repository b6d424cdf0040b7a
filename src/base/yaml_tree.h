// A YAML text as a tree of plain values that remember their positions. Stricter than YAML, since files come from
// anyone: one document, no anchors or aliases, limited size and depth, plain keys without repeats. Errors are
// UsageError "file:line:column: ...". Free functions and values; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::base {

/// Largest accepted text, in bytes.
constexpr size_t kLargestYaml = size_t{1} << 20;

struct YamlNode {
  enum class Kind : uint8_t { null, scalar, list, map };
  Kind kind = Kind::null;
  int line = 0;  ///< from 1; 0: unknown
  int column = 0;
  std::string text = {};             ///< text of a scalar
  std::vector<YamlNode> keys = {};   ///< keys of a map, one per item
  std::vector<YamlNode> items = {};  ///< items of a list or map

  [[nodiscard]] bool is(Kind wanted) const { return kind == wanted; }
  /// Returns the value of a map's key, or nullptr.
  [[nodiscard]] const YamlNode* find(std::string_view key) const;
};

/// Returns "a map", "a list", "'text'" or "nothing", for errors.
std::string describe(const YamlNode& node);
/// Returns a file's text for an error: short, and without control characters.
std::string shown(std::string_view text);
/// Returns "file:line:column".
std::string place(const std::string& file, const YamlNode& node);
/// Throws UsageError "file:line:column: message".
[[noreturn]] void reject(const std::string& file, const YamlNode& node, const std::string& message);

/// Returns the root; its kind is null for an empty text.
YamlNode parse_yaml(const std::string& text, const std::string& file);

}  // namespace lockstep::base
