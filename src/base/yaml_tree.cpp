#include "base/yaml_tree.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <set>
#include <sstream>

#include "lockstep/error.h"

namespace lockstep::base {
namespace {

constexpr size_t kDeepest = 16;
constexpr size_t kShown = 60;

/// Builds the tree from the parser's events.
class TreeBuilder final : public YAML::EventHandler {
 public:
  explicit TreeBuilder(const std::string& file) : file_(file) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) reject(file_, at(mark), "has content after the end of its document");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add(node(mark, anchor)); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override { refuse_reference(at(mark)); }
  void OnScalar(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                const std::string& value) override {
    YamlNode scalar = node(mark, anchor, YamlNode::Kind::scalar);
    scalar.text = value;
    add(std::move(scalar));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open(node(mark, anchor, YamlNode::Kind::list));
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    open(node(mark, anchor, YamlNode::Kind::map));
  }
  void OnMapEnd() override {
    check_keys(open_.back());
    close();
  }

  [[nodiscard]] YamlNode take() { return std::move(root_); }

 private:
  static YamlNode at(const YAML::Mark& mark, YamlNode::Kind kind = YamlNode::Kind::null) {
    return mark.is_null() ? YamlNode{kind} : YamlNode{kind, mark.line + 1, mark.column + 1};
  }
  [[noreturn]] void refuse_reference(const YamlNode& where) const {
    reject(file_, where, "anchors (&) and aliases (*) are not allowed");
  }
  [[nodiscard]] YamlNode node(const YAML::Mark& mark, YAML::anchor_t anchor,
                              YamlNode::Kind kind = YamlNode::Kind::null) const {
    YamlNode made = at(mark, kind);
    if (anchor != 0) refuse_reference(made);
    return made;
  }
  void open(YamlNode made) {
    if (open_.size() >= kDeepest) reject(file_, made, fmt::format("is nested deeper than {} levels", kDeepest));
    open_.push_back(std::move(made));
  }
  void close() {
    YamlNode done = std::move(open_.back());
    open_.pop_back();
    add(std::move(done));
  }
  void add(YamlNode made) {
    if (open_.empty()) {
      root_ = std::move(made);
      return;
    }
    YamlNode& parent = open_.back();
    const bool is_key = parent.is(YamlNode::Kind::map) && parent.keys.size() == parent.items.size();
    (is_key ? parent.keys : parent.items).push_back(std::move(made));
  }
  void check_keys(const YamlNode& map) const {
    std::set<std::string_view> seen;
    for (const YamlNode& key : map.keys) {
      if (!key.is(YamlNode::Kind::scalar)) reject(file_, key, "a key must be plain text");
      if (!seen.insert(key.text).second) reject(file_, key, "key '" + shown(key.text) + "' is repeated");
    }
  }

  const std::string& file_;
  std::vector<YamlNode> open_;
  YamlNode root_;
  int documents_ = 0;
};

}  // namespace

const YamlNode* YamlNode::find(std::string_view key) const {
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].text == key) return &items[i];
  }
  return nullptr;
}

std::string shown(std::string_view text) {
  std::string result(text.substr(0, kShown));
  for (char& c : result) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  }
  return text.size() > kShown ? result + "..." : result;
}

std::string describe(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::null:
      return "nothing";
    case YamlNode::Kind::scalar:
      return "'" + shown(node.text) + "'";
    case YamlNode::Kind::list:
      return "a list";
    case YamlNode::Kind::map:
      return "a map";
  }
  return "";
}

std::string place(const std::string& file, const YamlNode& node) {
  return node.line == 0 ? file : fmt::format("{}:{}:{}", file, node.line, node.column);
}

void reject(const std::string& file, const YamlNode& node, const std::string& message) {
  throw UsageError(place(file, node) + ": " + message);
}

YamlNode parse_yaml(const std::string& text, const std::string& file) {
  if (text.size() > kLargestYaml) {
    throw UsageError(fmt::format("{}: has {} bytes; at most {} are allowed", file, text.size(), kLargestYaml));
  }
  TreeBuilder builder(file);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    // The second call finds content after the end of the document. YAML::LoadAll would never return for some texts
    // (yaml-cpp 0.7).
    if (parser.HandleNextDocument(builder)) parser.HandleNextDocument(builder);
  } catch (const YAML::Exception& error) {
    const std::string where =
        error.mark.is_null() ? file : fmt::format("{}:{}:{}", file, error.mark.line + 1, error.mark.column + 1);
    throw UsageError(fmt::format("{}: not valid YAML: {}", where, shown(error.msg)));
  }
  return builder.take();
}

}  // namespace lockstep::base
