// Reads values of an experiment file's YAML tree in the types they must have. Anything that does not fit is a
// UsageError at its place. A Reader is a plain value; any thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/yaml_tree.h"

namespace lockstep::lab {

using base::YamlNode;
using Names = std::vector<std::string>;

class Reader {
 public:
  explicit Reader(std::string file) : file_(std::move(file)) {}

  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] std::string place(const YamlNode& node) const { return base::place(file_, node); }
  [[noreturn]] void fail(const YamlNode& node, const std::string& message) const { base::reject(file_, node, message); }

  /// Checks that it is a map whose keys are all in `allowed`. `what` names it: "a table".
  void check_map(const YamlNode& node, std::string_view what, const Names& allowed) const;
  void check_map(const YamlNode& node, std::string_view what) const;
  /// Returns the value of a key; nullptr if it is absent, empty or `off`.
  static const YamlNode* find(const YamlNode& map, std::string_view key);

  /// `what` names the value: "title".
  [[nodiscard]] std::string text(const YamlNode& node, std::string_view what) const;
  [[nodiscard]] std::string text_of(const YamlNode& map, std::string_view key) const;
  [[nodiscard]] bool flag_of(const YamlNode& map, std::string_view key) const;
  [[nodiscard]] int whole(const YamlNode& node, std::string_view what, int least, int most) const;
  [[nodiscard]] double number(const YamlNode& node, std::string_view what) const;
  /// Returns one value, or the values of a list that is not empty; never a map.
  [[nodiscard]] std::vector<const YamlNode*> one_or_more(const YamlNode& node, std::string_view what) const;
  [[nodiscard]] const std::vector<YamlNode>& list(const YamlNode& node, std::string_view what) const;
  /// Accepts letters, digits, hyphens and underscores.
  [[nodiscard]] std::string simple_name(const YamlNode& node, std::string_view what) const;

 private:
  std::string file_;
};

}  // namespace lockstep::lab
