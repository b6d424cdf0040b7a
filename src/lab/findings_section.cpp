// Reads the findings of an experiment file, and the files with reported figures.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/file.h"
#include "base/suggest.h"
#include "lab/fields.h"
#include "lab/report_section.h"
#include "lockstep/error.h"

namespace lockstep::lab {
namespace {

constexpr uint64_t kLargestReported = uint64_t{1} << 20;

struct KindRule {
  std::string_view name;
  TestKind kind;
  Names keys;  ///< keys besides those of the kind itself, group, where and by
  Names is;    ///< values allowed for `is`; empty: any value
};

const std::vector<KindRule>& rules() {
  static const std::vector<KindRule> all{
      {"compare", TestKind::compare, {"first", "second", "is", "within"}, {"less", "greater", "same", "different"}},
      {"trend", TestKind::trend, {"over", "is", "within"}, {"grows", "falls", "flat", "saturates"}},
      {"ratio", TestKind::ratio, {"first", "second", "at_least", "at_most"}, {}},
      {"value", TestKind::value, {"at_least", "at_most"}, {}},
      {"spread", TestKind::spread, {"is", "within"}, {"together", "apart"}},
      {"most", TestKind::most, {"over", "is", "within"}, {}},
      {"least", TestKind::least, {"over", "is", "within"}, {}},
      {"slope", TestKind::slope, {"over", "at_least", "at_most"}, {}},
      {"curve", TestKind::curve, {"over", "first", "second", "is", "within"}, {"same", "higher", "lower"}}};
  return all;
}

bool contains(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Names split(std::string_view line) {
  Names cells;
  for (size_t begin = 0; begin <= line.size();) {
    const size_t end = std::min(line.find(',', begin), line.size());
    cells.emplace_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return cells;
}

}  // namespace

FindingTest ReportReader::test(const YamlNode& node) {
  reader_.check_map(node, "a test");
  const KindRule* rule = nullptr;
  Names kinds;
  for (const KindRule& each : rules()) {
    kinds.emplace_back(each.name);
    if (node.find(each.name) == nullptr) continue;
    if (rule != nullptr) reader_.fail(node, fmt::format("a test is either {} or {}, not both", rule->name, each.name));
    rule = &each;
  }
  if (rule == nullptr) {
    const std::string seen = node.keys.empty() ? "" : base::shown(node.keys.front().text);
    reader_.fail(node, "a test needs a kind with a field, such as `compare: seconds`" + base::hint(seen, kinds));
  }
  Names allowed{std::string(rule->name), "group", "where", "by", "per"};
  allowed.insert(allowed.end(), rule->keys.begin(), rule->keys.end());
  reader_.check_map(node, fmt::format("a test of kind {}", rule->name), allowed);
  FindingTest made;
  made.per = per(node);
  made.kind = rule->kind;
  made.line = node.line;
  made.column = node.column;
  made.field = field(*node.find(rule->name), Wanted::any, made.per != Per::run || rule->kind == TestKind::spread);
  made.by = fields(node, "by", Wanted::set, true);
  made.first = filter(node);
  made.second = made.first;
  const YamlNode* is = node.find("is");
  if (contains(rule->keys, "is")) {
    if (is == nullptr) reader_.fail(node, fmt::format("a test of kind {} needs `is`", rule->name));
    made.is = reader_.text(*is, "is");
    if (!rule->is.empty() && !contains(rule->is, made.is)) {
      const std::string shown = base::shown(made.is);
      reader_.fail(*is, fmt::format("is: '{}' is not allowed{}", shown, base::hint(shown, rule->is)));
    }
  }
  test_values(node, made);
  const bool parts =
      made.kind == TestKind::spread || of_part(made.over) || std::any_of(made.by.begin(), made.by.end(), of_part);
  for (const Filter* side : {&made.first, &made.second}) check_parts(node, *side, parts ? Per::worker : made.per);
  return made;
}

void ReportReader::test_values(const YamlNode& node, FindingTest& made) {
  const bool sides = made.kind == TestKind::compare || made.kind == TestKind::ratio || made.kind == TestKind::curve;
  for (const char* side : {"first", "second"}) {
    if (!sides) break;
    if (Reader::find(node, side) == nullptr)
      reader_.fail(node, fmt::format("the test needs `{}`: a map of fields", side));
    add_where(node, side, side[0] == 'f' ? made.first : made.second);
  }
  const bool over = made.kind == TestKind::trend || made.kind == TestKind::most || made.kind == TestKind::least ||
                    made.kind == TestKind::slope;
  if (made.kind == TestKind::curve) curve_fields(node, made);
  if (over) {
    const YamlNode* at = Reader::find(node, "over");
    if (at == nullptr) reader_.fail(node, "the test needs `over`: a field");
    made.over = field(*at, Wanted::set, true);
  }
  if (const YamlNode* at = Reader::find(node, "at_least")) made.at_least = reader_.number(*at, "at_least");
  if (const YamlNode* at = Reader::find(node, "at_most")) made.at_most = reader_.number(*at, "at_most");
  const bool bounds = made.kind == TestKind::ratio || made.kind == TestKind::value || made.kind == TestKind::slope;
  if (bounds && !made.at_least && !made.at_most) reader_.fail(node, "the test needs at_least or at_most");
  if (made.at_least && made.at_most && *made.at_least > *made.at_most)
    reader_.fail(node, fmt::format("at_least: {:g} is above at_most: {:g}", *made.at_least, *made.at_most));
  if (const YamlNode* at = Reader::find(node, "within")) {
    made.within = reader_.number(*at, "within");
    if (made.within < 0) reader_.fail(*at, fmt::format("within: '{}' is not allowed; it takes 0 or more", at->text));
  }
}

void ReportReader::curve_fields(const YamlNode& node, FindingTest& made) {
  const Names curves{"loss", "accuracy", "train_loss"};
  const Names places{"step", "epoch", "seconds", "iteration"};
  const YamlNode& y = *node.find("curve");
  if (!contains(curves, made.field))
    reader_.fail(y, fmt::format("curve: '{}' is not allowed{}", made.field, base::hint(made.field, curves)));
  const YamlNode* over = Reader::find(node, "over");
  if (over == nullptr) reader_.fail(node, "the test needs `over`: step, epoch, seconds or iteration");
  made.over = reader_.text(*over, "over");
  if (!contains(places, made.over))
    reader_.fail(*over,
                 fmt::format("over: '{}' is not allowed{}", base::shown(made.over), base::hint(made.over, places)));
}

FindingSpec ReportReader::finding(const YamlNode& node) {
  reader_.check_map(node, "a finding", {"name", "says", "tests", "explain", "ours", "not_judged", "note"});
  FindingSpec made;
  made.says = reader_.text_of(node, "says");
  if (made.says.empty()) reader_.fail(node, "a finding needs `says`: a sentence with the study's finding");
  const YamlNode* tests = Reader::find(node, "tests");
  made.ours = reader_.flag_of(node, "ours");
  made.not_judged = reader_.text_of(node, "not_judged");
  made.note = reader_.text_of(node, "note");
  if (tests == nullptr && made.not_judged.empty())
    reader_.fail(node, "a finding needs tests, or `not_judged` with the reason why it has none");
  if (tests == nullptr) return made;
  for (const YamlNode& each : reader_.list(*tests, "tests")) made.tests.push_back(test(each));
  made.explain = fields(node, "explain", Wanted::any);
  return made;
}

std::string ReportedFiles::load(const YamlNode& at) const {
  if (kept_ != nullptr) return value_of(*kept_, at.text);
  const std::string path = (std::filesystem::path(reader_.file()).parent_path() / at.text).string();
  try {
    const std::vector<uint8_t> bytes = base::read_file(path, kLargestReported);
    return {bytes.begin(), bytes.end()};
  } catch (const Error& error) {
    reader_.fail(at, fmt::format("reported: {}", error.what()));
  }
}

Names ReportedFiles::columns(const YamlNode& at) {
  std::string text = value_of(texts_, at.text);
  if (text.empty()) {
    text = load(at);
    texts_.emplace_back(at.text, text);
  }
  Names header;
  int line_number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    ++line_number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const Names cells = split(line);
    if (header.empty()) {
      header = cells;
    } else if (cells.size() != header.size()) {
      reader_.fail(at, fmt::format("reported: {}:{}: has {} cells, but the first line has {}", at.text, line_number,
                                   cells.size(), header.size()));
    }
  }
  if (header.empty())
    reader_.fail(at, fmt::format("reported: {} is empty; it takes a CSV file with names in its first line", at.text));
  return header;
}

}  // namespace lockstep::lab
