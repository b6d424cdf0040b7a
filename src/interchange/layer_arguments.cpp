#include "interchange/layer_arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/suggest.h"
#include "lockstep/error.h"

namespace lockstep::interchange {
namespace {

bool is_name_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-'; }

const std::string& value_of(std::string_view name, const YamlNode& where, const Variables& variables,
                            const std::string& file) {
  const auto found = variables.find(std::string(name));
  if (found != variables.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [key, value] : variables) known.push_back(key);
  reject(file, where, "the model has no option '" + shown(name) + "'" + base::hint(shown(name), known));
}

std::optional<double> to_double(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

/// "normal(0.1)" -> {"normal", 0.1}; "xavier" -> {"xavier", nothing}.
struct Call {
  std::string name;
  std::optional<double> argument;
};

std::optional<Call> to_call(const std::string& text) {
  const size_t open = text.find('(');
  if (open == std::string::npos) return Call{text, std::nullopt};
  if (text.back() != ')') return std::nullopt;
  const auto argument = to_double(std::string_view(text).substr(open + 1, text.size() - open - 2));
  if (!argument) return std::nullopt;
  return Call{text.substr(0, open), argument};
}

std::optional<graph::Initializer> to_initializer(const std::string& text, int64_t fan_in, int64_t fan_out) {
  using graph::Initializer;
  if (const auto value = to_double(text)) return Initializer::constant(static_cast<float>(*value));
  const auto call = to_call(text);
  if (!call) return std::nullopt;
  if (call->argument) {
    const auto value = static_cast<float>(*call->argument);
    if (call->name == "constant") return Initializer::constant(value);
    if (call->name == "normal" && value >= 0) return Initializer::normal(value);
    if (call->name == "uniform" && value >= 0) return Initializer::uniform(value);
    return std::nullopt;
  }
  if (call->name == "zeros") return Initializer::zeros();
  if (call->name == "ones") return Initializer::constant(1);
  if (call->name == "xavier") return Initializer::xavier_uniform(fan_in, fan_out);
  if (call->name == "he") return Initializer::normal(std::sqrt(2.0F / static_cast<float>(fan_in)));
  return std::nullopt;
}

}  // namespace

std::string expand(const YamlNode& scalar, const Variables& variables, const std::string& file) {
  const std::string& text = scalar.text;
  const bool whole = text.size() > 1 && text[0] == '$' && std::all_of(text.begin() + 1, text.end(), is_name_char);
  if (whole) return value_of(std::string_view(text).substr(1), scalar, variables, file);
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t open = text.find("${", at);
    const size_t close = open == std::string::npos ? open : text.find('}', open);
    if (close == std::string::npos) {
      if (open != std::string::npos) reject(file, scalar, "'" + shown(text) + "': '${' has no '}'");
      return result + text.substr(at);
    }
    result += text.substr(at, open - at);
    result += value_of(std::string_view(text).substr(open + 2, close - open - 2), scalar, variables, file);
    at = close + 1;
  }
  return result;
}

std::optional<int64_t> to_integer(std::string_view text) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

const YamlNode* Arguments::find(std::string_view key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : found->second.value;
}

void Arguments::reject(std::string_view key, const std::string& message) const {
  const auto found = entries_.find(key);
  const YamlNode& node = found == entries_.end() ? where_ : *found->second.value;
  interchange::reject(file_, node.line == 0 ? where_ : node, fmt::format("{}: {}: {}", subject_, key, message));
}

void Arguments::missing(std::string_view key) const { reject(key, "is missing"); }

void Arguments::check_keys(const std::vector<std::string>& allowed) const {
  for (const auto& [key, entry] : entries_) {
    if (std::find(allowed.begin(), allowed.end(), key) != allowed.end()) continue;
    const std::string hint = allowed.empty() ? " (it has none)" : base::hint(shown(key), allowed);
    interchange::reject(file_, *entry.key, fmt::format("{}: unknown key '{}'{}", subject_, shown(key), hint));
  }
}

std::string Arguments::scalar(std::string_view key, const YamlNode& node, std::string_view takes) const {
  if (!node.is(YamlNode::Kind::scalar)) reject(key, fmt::format("{} is not {}", describe(node), takes));
  return expand(node, variables_, file_);
}

std::string Arguments::text(std::string_view key, const std::string& fallback) const {
  const YamlNode* node = find(key);
  return node == nullptr ? fallback : scalar(key, *node, "a text");
}

std::string Arguments::choice(std::string_view key, const std::vector<std::string>& allowed) const {
  const std::string value = text(key, allowed.front());
  if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return value;
  reject(key, "'" + shown(value) + "'" + base::hint(shown(value), allowed));
}

bool Arguments::flag(std::string_view key, bool fallback) const {
  const std::string value = text(key, fallback ? "true" : "false");
  if (value == "true") return true;
  if (value == "false") return false;
  reject(key, "'" + shown(value) + "' is not true or false");
}

double Arguments::to_number(std::string_view key, const std::string& value) const {
  const auto number = to_double(value);
  if (!number) reject(key, "'" + shown(value) + "' is not a number");
  if (std::abs(*number) > static_cast<double>(std::numeric_limits<float>::max())) {
    reject(key, "'" + shown(value) + "' is too large for float32");
  }
  return *number;
}

double Arguments::number(std::string_view key, std::optional<double> fallback) const {
  const YamlNode* node = find(key);
  if (node == nullptr && fallback) return *fallback;
  if (node == nullptr) missing(key);
  return to_number(key, scalar(key, *node, "a number"));
}

double Arguments::number(std::string_view key, std::optional<double> fallback, double least, double most) const {
  const double value = number(key, fallback);
  if (value < least || value > most) reject(key, fmt::format("{} must be from {} to {}", value, least, most));
  return value;
}

int64_t Arguments::to_limited(std::string_view key, const std::string& value, int64_t least, int64_t most) const {
  const auto number = to_integer(value);
  if (!number || *number < least || *number > most) {
    reject(key, fmt::format("'{}' is not a whole number from {} to {}", shown(value), least, most));
  }
  return *number;
}

int64_t Arguments::integer(std::string_view key, std::optional<int64_t> fallback, int64_t least, int64_t most) const {
  const YamlNode* node = find(key);
  if (node == nullptr && fallback) return *fallback;
  if (node == nullptr) missing(key);
  return to_limited(key, scalar(key, *node, "a whole number"), least, most);
}

std::vector<std::string> Arguments::texts(std::string_view key, std::string_view takes) const {
  const YamlNode* node = find(key);
  if (node == nullptr) missing(key);
  std::vector<std::string> result;
  if (node->is(YamlNode::Kind::list)) {
    for (const YamlNode& item : node->items) result.push_back(scalar(key, item, takes));
    return result;
  }
  const std::string all = scalar(key, *node, takes);
  for (size_t at = 0; at <= all.size();) {
    const size_t comma = std::min(all.find(',', at), all.size());
    result.push_back(all.substr(at, comma - at));
    at = comma + 1;
  }
  return result;
}

std::vector<int64_t> Arguments::integers(std::string_view key, int64_t least, int64_t most) const {
  std::vector<int64_t> result;
  for (const std::string& item : texts(key, "a list of whole numbers")) {
    result.push_back(to_limited(key, item, least, most));
  }
  return result;
}

std::pair<int64_t, int64_t> Arguments::pair(std::string_view key, std::optional<int64_t> fallback, int64_t least,
                                            int64_t most) const {
  if (!has(key) && fallback) return {*fallback, *fallback};
  const std::vector<int64_t> sizes = integers(key, least, most);
  if (sizes.empty() || sizes.size() > 2) {
    reject(key, fmt::format("has {} numbers; it takes one, or [vertical, horizontal]", sizes.size()));
  }
  return {sizes.front(), sizes.back()};
}

std::vector<std::string> Arguments::names(std::string_view key) const {
  const YamlNode* node = find(key);
  if (node == nullptr) return {};
  if (!node->is(YamlNode::Kind::list)) return {scalar(key, *node, "the name of a value or a list of names")};
  return texts(key, "the name of a value");
}

graph::Initializer Arguments::initializer(std::string_view key, const std::string& fallback, int64_t fan_in,
                                          int64_t fan_out) const {
  const YamlNode* node = find(key);
  if (node != nullptr && node->is(YamlNode::Kind::list)) {
    std::vector<float> values;
    values.reserve(node->items.size());
    for (const std::string& item : texts(key, "a list of numbers")) {
      values.push_back(static_cast<float>(to_number(key, item)));
    }
    return graph::Initializer::list(std::move(values));
  }
  const std::string value = node == nullptr ? fallback : scalar(key, *node, "start values");
  if (auto result = to_initializer(value, fan_in, fan_out)) return *result;
  reject(key, "'" + shown(value) +
                  "' is not one of zeros, ones, xavier, he, normal(D), uniform(L), constant(V), a number, or a list");
}

}  // namespace lockstep::interchange
