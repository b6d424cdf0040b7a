// The keys of one layer (or of another part of a model file), read with types, defaults and limits. Values may contain
// the model's options: ${name} anywhere in a text, or $name as the whole value. Errors are UsageError
// "file:line:column: layer 'fc1' (dense): units: 'x' ...". Borrows the file's tree; for one thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/yaml_tree.h"
#include "lockstep/graph.h"

namespace lockstep::interchange {

using base::describe;
using base::place;
using base::reject;
using base::shown;
using base::YamlNode;

using Variables = std::map<std::string, std::string>;

/// Returns the text with options filled in. Throws UsageError for an option that the model does not have.
std::string expand(const YamlNode& scalar, const Variables& variables, const std::string& file);

/// Returns the whole number; nothing for any other text.
std::optional<int64_t> to_integer(std::string_view text);

class Arguments {
 public:
  /// `subject` begins messages: "layer 'fc1' (dense)".
  Arguments(const std::string& file, const Variables& variables, std::string subject, const YamlNode& where)
      : file_(file),
        variables_(variables),
        subject_(std::move(subject)),
        where_{YamlNode::Kind::null, where.line, where.column} {}

  /// Adds a key, or replaces it.
  void add(const YamlNode& key, const YamlNode& value) { entries_[key.text] = {&key, &value}; }
  void add(const std::string& key, const YamlNode& value) { entries_[key] = {&value, &value}; }
  [[nodiscard]] bool has(std::string_view key) const { return entries_.contains(key); }
  [[nodiscard]] const YamlNode* find(std::string_view key) const;
  /// Throws UsageError for a key that is not allowed.
  void check_keys(const std::vector<std::string>& allowed) const;

  [[nodiscard]] std::string text(std::string_view key, const std::string& fallback) const;
  [[nodiscard]] std::string choice(std::string_view key, const std::vector<std::string>& allowed) const;
  [[nodiscard]] bool flag(std::string_view key, bool fallback) const;
  [[nodiscard]] double number(std::string_view key, std::optional<double> fallback) const;
  [[nodiscard]] double number(std::string_view key, std::optional<double> fallback, double least, double most) const;
  [[nodiscard]] int64_t integer(std::string_view key, std::optional<int64_t> fallback, int64_t least,
                                int64_t most) const;
  /// A list, one number, or a text with commas (an option that is a list).
  [[nodiscard]] std::vector<int64_t> integers(std::string_view key, int64_t least, int64_t most) const;
  /// Returns one number for both directions, or a list [vertical, horizontal].
  [[nodiscard]] std::pair<int64_t, int64_t> pair(std::string_view key, std::optional<int64_t> fallback, int64_t least,
                                                 int64_t most) const;
  /// Returns names of values: one, or a list.
  [[nodiscard]] std::vector<std::string> names(std::string_view key) const;
  /// Accepts zeros, ones, xavier, he, normal(deviation), uniform(limit), constant(value), a number, or a list of all
  /// values.
  [[nodiscard]] graph::Initializer initializer(std::string_view key, const std::string& fallback, int64_t fan_in,
                                               int64_t fan_out) const;

  [[noreturn]] void reject(std::string_view key, const std::string& message) const;
  [[nodiscard]] const YamlNode& where() const { return where_; }
  [[nodiscard]] const std::string& subject() const { return subject_; }

 private:
  struct Entry {
    const YamlNode* key = nullptr;
    const YamlNode* value = nullptr;
  };

  /// Returns the expanded text of a scalar; throws for a list or map.
  [[nodiscard]] std::string scalar(std::string_view key, const YamlNode& node, std::string_view takes) const;
  /// Returns the texts of a list, of one scalar, or of a scalar with commas.
  [[nodiscard]] std::vector<std::string> texts(std::string_view key, std::string_view takes) const;
  [[nodiscard]] double to_number(std::string_view key, const std::string& text) const;
  [[nodiscard]] int64_t to_limited(std::string_view key, const std::string& text, int64_t least, int64_t most) const;
  [[noreturn]] void missing(std::string_view key) const;

  const std::string& file_;
  const Variables& variables_;
  std::string subject_;
  YamlNode where_;
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace lockstep::interchange
