// A YAML text as a tree of plain values that remember where they stand. Stricter than YAML, since files come from
// anyone: one document, no anchors or aliases, limited size and depth, keys that are plain and not repeated. What is
// wrong is a UsageError "file:line:column: ...". Free functions and values; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::base {

/// Bytes of the largest text.
constexpr size_t kLargestYaml = size_t{1} << 20;

struct YamlNode {
  enum class Kind : uint8_t { null, scalar, list, map };
  Kind kind = Kind::null;
  int line = 0;  ///< from 1; 0: nowhere
  int column = 0;
  std::string text = {};             ///< of a scalar
  std::vector<YamlNode> keys = {};   ///< of a map, one per item
  std::vector<YamlNode> items = {};  ///< of a list or map

  [[nodiscard]] bool is(Kind wanted) const { return kind == wanted; }
  /// The value of a key of a map, or nullptr.
  [[nodiscard]] const YamlNode* find(std::string_view key) const;
};

/// "a map", "a list", "'text'", "nothing": for errors.
std::string describe(const YamlNode& node);
/// Text of a file for an error: short, and without control characters.
std::string shown(std::string_view text);
/// "file:line:column".
std::string place(const std::string& file, const YamlNode& node);
/// Throws UsageError "file:line:column: message".
[[noreturn]] void reject(const std::string& file, const YamlNode& node, const std::string& message);

/// The root; of kind null for an empty text.
YamlNode parse_yaml(const std::string& text, const std::string& file);

}  // namespace lockstep::base
