#include "lab/guest_layer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "guest/figures.h"
#include "guest/guest_run.h"
#include "lab/expansion.h"
#include "lab/run_check.h"
#include "lockstep/error.h"

namespace lockstep::lab {
namespace {

using Kind = YamlNode::Kind;

constexpr uint64_t kLargestFigures = 1 << 20;

Names command_words(const Reader& reader, const YamlNode& node) {
  Names words;
  if (node.is(Kind::list)) {
    for (const YamlNode& item : reader.list(node, "command")) words.push_back(reader.text(item, "command"));
  } else {
    try {
      words = guest::words_of(reader.text(node, "command"));
    } catch (const UsageError& error) {
      reader.fail(node, error.what());
    }
  }
  // A script may lie beside the experiment.
  for (std::string& word : words) {
    if (word.find('{') == std::string::npos) word = found_beside(reader.file(), word);
  }
  return words;
}

std::string required(const Reader& reader, const YamlNode& map, const char* key) {
  const YamlNode* node = Reader::find(map, key);
  if (node == nullptr) reader.fail(map, fmt::format("a figure of this kind needs {}", key));
  return reader.text(*node, key);
}

/// Returns the SOURCE of a figure: an expression, or a map with the kind of source.
std::string source_text(const Reader& reader, const YamlNode& node) {
  if (!node.is(Kind::map)) return "output:" + reader.text(node, "a figure");
  reader.check_map(node, "a figure", {"output", "csv", "column", "events", "tag", "over"});
  if (const YamlNode* output = Reader::find(node, "output")) return "output:" + reader.text(*output, "output");
  if (const YamlNode* csv = Reader::find(node, "csv")) {
    return fmt::format("csv:{}#{}", reader.text(*csv, "csv"), required(reader, node, "column"));
  }
  const std::string over = reader.text_of(node, "over");
  if (!over.empty() && over != "step" && over != "epoch") {
    reader.fail(*node.find("over"),
                fmt::format("over: '{}' is not allowed; it takes step or epoch", base::shown(over)));
  }
  return fmt::format("{}events:{}#{}", over == "epoch" ? "epoch-" : "", required(reader, node, "events"),
                     required(reader, node, "tag"));
}

void lay_figure(const Reader& reader, const YamlNode& key, const YamlNode& value, std::vector<std::string>& figures) {
  const std::string name = reader.text(key, "a figure");
  if (find_field(name) == nullptr && name != "step" && name != "epoch" && name != "train_accuracy") {
    reader.fail(key, fmt::format("figures: '{}' is neither a measured field nor step, epoch or train_accuracy{}",
                                 base::shown(name), field_hint(name)));
  }
  std::erase_if(figures, [&](const std::string& text) { return text.starts_with(name + "="); });
  if (value.is(Kind::scalar) && value.text == "off") return;
  const std::string text = name + "=" + source_text(reader, value);
  try {
    (void)guest::parse_source(text);
  } catch (const UsageError& error) {
    reader.fail(value, error.what());
  }
  figures.push_back(text);
}

/// Reads {worker:0: FILE, ps:0: {file: FILE, every: 5s}}.
std::vector<std::string> log_texts(const Reader& reader, const YamlNode& map) {
  reader.check_map(map, "logs");
  std::vector<std::string> logs;
  for (size_t i = 0; i < map.keys.size(); ++i) {
    const YamlNode& value = map.items[i];
    std::string every;
    if (value.is(Kind::map)) {
      reader.check_map(value, "a log", {"file", "every"});
      every = reader.text_of(value, "every");
    }
    const std::string file = value.is(Kind::map) ? required(reader, value, "file") : reader.text(value, "a log");
    const std::string text = fmt::format("{}={}{}", reader.text(map.keys[i], "a role"),
                                         found_beside(reader.file(), file), every.empty() ? "" : "@" + every);
    guest::LogSource source;
    try {
      source = guest::parse_log(text);
    } catch (const UsageError& error) {
      reader.fail(map.keys[i], error.what());
    }
    if (!every.empty() && !(source.every > 0)) {
      reader.fail(*value.find("every"),
                  fmt::format("every: '{}' is not allowed; it takes a time, such as 1s", base::shown(every)));
    }
    logs.push_back(source.text());
  }
  if (logs.empty()) reader.fail(map, "logs is empty; give the log of at least one role");
  return logs;
}

}  // namespace

GivenGuest read_guest(const Reader& reader, const YamlNode& map, GivenGuest above) {
  if (const YamlNode* command = map.find("command"); command != nullptr && !command->is(Kind::null)) {
    above.command = command;
    above.plan.command.clear();
    if (Reader::find(map, "command") != nullptr) above.plan.command = command_words(reader, *command);
  }
  if (const YamlNode* logs = Reader::find(map, "logs")) {
    if (Reader::find(map, "command") != nullptr) {
      reader.fail(*logs, "logs and command do not go together");
    }
    above.logs = logs;
    above.plan.logs = log_texts(reader, *logs);
    above.plan.command.clear();
  } else if (Reader::find(map, "command") != nullptr) {
    above.plan.logs.clear();
  }
  if (const YamlNode* figures = Reader::find(map, "figures")) {
    reader.check_map(*figures, "figures");
    above.figures = figures;
    for (size_t i = 0; i < figures->keys.size(); ++i) {
      lay_figure(reader, figures->keys[i], figures->items[i], above.plan.figures);
    }
  }
  if (const YamlNode* deadline = Reader::find(map, "deadline")) {
    above.plan.deadline = reader.text(*deadline, "deadline");
    try {
      (void)guest::parse_deadline(above.plan.deadline, "deadline");
    } catch (const UsageError& error) {
      reader.fail(*deadline, error.what());
    }
  }
  return above;
}

std::string yaml_name(std::string name) {
  if (!name.starts_with("options.")) std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

Values guest_values(const RunPlan& plan, const std::string& data) {
  Values values;
  for (const auto& [name, value] : plan.settings) values.emplace_back(yaml_name(name), value);
  values.insert(values.end(), plan.tags.begin(), plan.tags.end());
  if (data.empty()) return values;
  std::erase_if(values, [](const auto& value) { return value.first == "data"; });
  values.emplace_back("data", data);
  return values;
}

std::vector<std::string> guest_words(const RunPlan& plan, const std::string& run_dir, const std::string& data) {
  std::vector<std::string> words{"guest", "--run-dir=" + run_dir};
  for (const auto& [name, value] : guest_values(plan, data))
    words.push_back(fmt::format("--setting={}={}", name, value));
  const std::string workers = value_of(plan.settings, "workers");
  const bool hosts = !plan.cluster.hosts.empty();  // they have their roles
  const bool cluster = !hosts && ((!workers.empty() && workers != "0") || !value_of(plan.settings, "layout").empty());
  for (const char* name : {"workers", "ps", "layout", "monitor-every"}) {
    if (hosts && is_place(name)) continue;
    const std::string value = value_of(plan.settings, name);
    const bool beside = std::string_view(name) == "ps" && !cluster;
    if (!value.empty() && !beside) words.push_back(fmt::format("--{}={}", name, value));
  }
  if (cluster && value_of(plan.settings, "evaluator") == "true") words.emplace_back("--evaluator");
  if (!plan.cluster.emulate.empty()) words.push_back("--emulate=" + plan.cluster.emulate);
  if (!plan.cluster.faults.empty()) words.push_back("--faults=" + plan.cluster.faults);
  if (hosts) words.push_back("--hosts=" + plan.cluster.hosts);
  if (!plan.cluster.ssh.empty()) words.push_back("--ssh=" + plan.cluster.ssh);
  if (!plan.cluster.program.empty()) words.push_back("--program=" + plan.cluster.program);
  for (const std::string& figure : plan.guest.figures) words.push_back("--figure=" + figure);
  if (!plan.guest.deadline.empty()) words.push_back("--deadline=" + plan.guest.deadline);
  for (const std::string& log : plan.guest.logs) words.push_back("--log=" + log);
  if (!plan.guest.command.empty()) words.emplace_back("--");
  words.insert(words.end(), plan.guest.command.begin(), plan.guest.command.end());
  return words;
}

void add_guest_figures(const std::string& run_dir, Measured& values) {
  const std::string file = run_dir + "/figures.json";
  const std::vector<uint8_t> bytes = base::read_file(file, kLargestFigures);
  const auto json = base::parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file);
  if (!json.is_object()) throw DataError(file + ": is not a JSON object");
  for (const auto& [name, value] : json.items()) {
    if (value.is_number() && find_field(name) != nullptr) values[name] = value.get<double>();
  }
}

}  // namespace lockstep::lab
