#include "lab/experiment.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "base/suggest.h"
#include "lab/expansion.h"
#include "lab/overlay.h"
#include "lab/overrides.h"
#include "lab/report_section.h"
#include "lab/run_check.h"
#include "lab/test_check.h"
#include "lockstep/error.h"

namespace lockstep::lab {
namespace {

using Kind = YamlNode::Kind;

constexpr size_t kMostScales = 20;
const Names kTopKeys{"name",    "title",    "about", "cut",    "repeats", "retries", "warm_up",
                     "base",    "cluster",  "tags",  "groups", "grid",    "cases",   "command",
                     "figures", "deadline", "logs",  "report", "scales"};

Names scale_names(const Reader& reader, const YamlNode& root) {
  const YamlNode* scales = root.find("scales");
  if (scales == nullptr || scales->is(Kind::null)) return {};
  reader.check_map(*scales, "scales");
  if (scales->keys.empty()) reader.fail(*scales, "scales is empty; give one, or leave it out");
  if (scales->keys.size() > kMostScales)
    reader.fail(*scales, fmt::format("more than {} scales are not allowed", kMostScales));
  Names names;
  for (const YamlNode& key : scales->keys) names.push_back(reader.simple_name(key, "a scale"));
  return names;
}

/// Returns the names of all groups, also of those that a scale leaves out.
Names group_names(const YamlNode& root, const YamlNode& scaled) {
  Names names;
  for (const YamlNode* file : {&root, &scaled}) {
    const YamlNode* groups = file->find("groups");
    if (groups == nullptr || !groups->is(Kind::list)) continue;
    for (const YamlNode& group : groups->items) {
      const YamlNode* name = group.is(Kind::map) ? group.find("name") : nullptr;
      if (name != nullptr && std::find(names.begin(), names.end(), name->text) == names.end())
        names.push_back(name->text);
    }
  }
  if (names.empty() && root.find("name") != nullptr) names.push_back(root.find("name")->text);
  return names;
}

/// Collects the tags of the whole file and of all its scales, so that tags left out by a scale can still be named.
void collect_tags(const YamlNode& node, Names& tags) {
  for (size_t i = 0; i < node.items.size(); ++i) {
    const YamlNode& item = node.items[i];
    if (node.is(Kind::map) && node.keys[i].text == "tags" && item.is(Kind::map)) {
      for (const YamlNode& key : item.keys) {
        if (std::find(tags.begin(), tags.end(), key.text) == tags.end()) tags.push_back(key.text);
      }
    }
    collect_tags(item, tags);
  }
}

class FileParser {
 public:
  FileParser(const std::string& text, const std::string& file, const ParseOptions& options)
      : reader_(file), options_(options), root_(base::parse_yaml(text, file)) {
    if (root_.is(Kind::null))
      throw UsageError(file + ": is empty; docs/experiments.md describes the format of experiments");
    reader_.check_map(root_, "an experiment", kTopKeys);
    const YamlNode* name = root_.find("name");
    if (name == nullptr) reader_.fail(root_, "an experiment needs a name");
    (void)reader_.simple_name(*name, "name");
    scales_ = scale_names(reader_, root_);
    collect_tags(root_, tags_);
  }

  [[nodiscard]] std::string choose(const std::string& scale) const {
    if (scale.empty()) return scales_.empty() ? "" : scales_.front();
    if (std::find(scales_.begin(), scales_.end(), scale) != scales_.end()) return scale;
    if (scales_.empty())
      throw UsageError(
          fmt::format("{}: has no scales, so --scale {} is not allowed", reader_.file(), base::shown(scale)));
    throw UsageError(
        fmt::format("{}: has no scale '{}'{}", reader_.file(), base::shown(scale), base::hint(scale, scales_)));
  }

  /// `machine`: also checks this machine and the files that the experiment names.
  [[nodiscard]] Experiment parse(const std::string& scale, bool machine) const {
    const YamlNode scaled = with_settings(
        reader_, scale.empty() ? without_scales(root_) : at_scale(reader_, root_, *root_.find("scales")->find(scale)),
        options_.overrides.settings);
    reader_.check_map(scaled, "an experiment", kTopKeys);
    Experiment made;
    made.name = root_.find("name")->text;
    made.title = reader_.text_of(scaled, "title");
    if (made.title.empty()) made.title = made.name;
    made.about = reader_.text_of(scaled, "about");
    if (const YamlNode* cut = Reader::find(scaled, "cut")) {
      for (const YamlNode* what : reader_.one_or_more(*cut, "cut")) made.cut.push_back(reader_.text(*what, "cut"));
    }
    made.scale = scale;
    made.file = reader_.file();
    if (const YamlNode* retries = scaled.find("retries"); retries != nullptr && !retries->is(Kind::null)) {
      made.retries = reader_.whole(*retries, "retries", 0, kMostRetries);
    }
    Expansion expansion = expand(reader_, scaled, read_common(reader_, scaled, options_.overrides.local));
    if (options_.reported == nullptr) {
      for (const Variation& variation : expansion.variations) check_run(reader_, variation, options_.models, machine);
    }
    made.groups = std::move(expansion.groups);
    ReportedFiles reported(reader_, options_.reported);
    const Vocabulary vocabulary{tags_, group_names(root_, scaled)};
    made.report = ReportReader(reader_, vocabulary, reported).read(Reader::find(scaled, "report"));
    made.reported = reported.texts();
    return made;
  }

  [[nodiscard]] const Names& scales() const { return scales_; }
  [[nodiscard]] const Reader& reader() const { return reader_; }

 private:
  Reader reader_;
  const ParseOptions& options_;
  YamlNode root_;
  Names scales_;
  Names tags_;
};

}  // namespace

std::string value_of(const Values& values, std::string_view name) {
  const auto found = std::find_if(values.begin(), values.end(), [&](const auto& v) { return v.first == name; });
  return found == values.end() ? "" : found->second;
}

size_t Experiment::runs() const {
  size_t count = 0;
  for (const Group& group : groups) count += group.runs.size();
  return count;
}

Experiment parse_experiment(const std::string& text, const std::string& file, const std::string& scale,
                            const ParseOptions& options) {
  const FileParser parser(text, file, options);
  const std::string chosen = parser.choose(scale);
  Experiment made = parser.parse(chosen, options.reported == nullptr);
  made.text = text;
  // Errors at other scales are errors of the file too. Only this machine need not be large enough for them.
  if (options.reported != nullptr) return made;
  std::vector<Experiment> scales{made};
  for (const std::string& other : parser.scales()) {
    if (other != chosen) scales.push_back(parser.parse(other, false));
  }
  check_limits(parser.reader(), scales);
  // The caller's settings may take away what a test compares.
  if (options.overrides.settings.empty() && !options.overrides.local) check_tests(parser.reader(), scales);
  return made;
}

Experiment load_experiment(const std::string& path, const std::string& scale, const ParseOptions& options) {
  const std::vector<uint8_t> bytes = base::read_file(path, base::kLargestYaml + 1);
  return parse_experiment(std::string(bytes.begin(), bytes.end()), path, scale, options);
}

}  // namespace lockstep::lab
