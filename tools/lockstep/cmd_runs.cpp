// lockstep runs: the list of runs, filtered and sorted; tags, notes, and deleting.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "command.h"
#include "command_line.h"
#include "lockstep/error.h"
#include "records/format.h"
#include "records/run_filter.h"
#include "records/run_labels.h"
#include "records/run_values.h"
#include "run/run_directory.h"
#include "run_json.h"
#include "terminal/output.h"
#include "terminal/table.h"
#include "terminal/text.h"

namespace lockstep::tools {
namespace {

namespace fs = std::filesystem;
using records::known;
using records::RunValue;
using records::RunValues;

struct RunsArguments {
  std::vector<std::string> terms;
  std::string runs_dir = "runs";
  std::string sort;
  std::string columns;
  bool reverse = false;
  bool json = false;
  // Of the commands below it.
  std::string tag;
  std::string run;
  std::vector<std::string> runs;
  std::vector<std::string> note;
  bool remove = false;
  bool yes = false;
};

/// The runs of a folder, with their values.
struct Listed {
  std::vector<std::string> folders;
  std::vector<RunValues> values;
};

Listed read_runs(const std::string& runs_dir) {
  Listed listed;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(runs_dir, ignored)) {
    if (fs::exists(entry.path() / "config.yaml", ignored)) listed.folders.push_back(entry.path().string());
  }
  std::sort(listed.folders.begin(), listed.folders.end());
  for (const std::string& folder : listed.folders) listed.values.push_back(values_of(records::read_run(folder)));
  return listed;
}

/// Returns the values of a key; no value if a run has none.
std::vector<RunValue> values_at(const std::vector<RunValues>& runs, const std::string& key) {
  std::vector<RunValue> result;
  for (const RunValues& values : runs) {
    const auto found = values.find(key);
    result.push_back(found == values.end() ? RunValue{} : found->second);
  }
  return result;
}

bool less(const RunValue& a, const RunValue& b) {
  return known(a.number) && known(b.number) ? a.number < b.number : a.text < b.text;
}

/// Sorts positions by a key; runs without a value go last in both directions.
void sort_by(const std::string& key, bool reverse, const std::vector<RunValues>& runs, std::vector<size_t>& places) {
  const std::vector<RunValue> values = values_at(runs, key);
  std::stable_sort(places.begin(), places.end(), [&](size_t a, size_t b) {
    const bool none_a = values[a].text.empty();
    const bool none_b = values[b].text.empty();
    if (none_a || none_b) return !none_a && none_b;
    return reverse ? less(values[b], values[a]) : less(values[a], values[b]);
  });
}

/// Returns the positions of the runs that the filter lets through, in order: by default the newest first.
std::vector<size_t> choose_places(const RunsArguments& arguments, const Listed& listed) {
  const records::RunFilter filter(records::RunFilter::terms_of_words(arguments.terms), listed.values);
  std::vector<size_t> places;
  for (size_t i = 0; i < listed.values.size(); ++i) {
    if (filter.matches(listed.values[i])) places.push_back(i);
  }
  const bool given = !arguments.sort.empty();
  sort_by(given ? records::known_key(arguments.sort, listed.values) : "started", given == arguments.reverse,
          listed.values, places);
  return places;
}

std::string cell_text(const std::string& key, const RunValue& value) {
  const records::RunKey* def = records::find_run_key(key);
  if (value.text.empty() || def == nullptr) return value.text;
  if (def->kind == records::KeyKind::share) return terminal::percent(value.number);
  if (key == "loss" || key == "train_loss") return terminal::loss_text(value.number);
  if (key == "seconds") return terminal::duration_text(value.number);
  if (key == "step_seconds") return records::time_text(value.number);
  if (key == "started") return terminal::replaced(value.text.substr(0, 16), "T", " ");
  return def->kind == records::KeyKind::number ? records::count_text(value.number) : value.text;
}

bool is_bad_end(const std::string& reason) { return reason == "error" || reason == "non-finite loss"; }

std::string shown_cell(const terminal::Terminal& terminal, const std::string& key, const RunValue& value) {
  const std::string text = cell_text(key, value);
  if (key == "name") return terminal.bold(text);
  if (key == "state" && text == "running") return terminal.green(text);
  if (text == "broken" || (key == "end" && is_bad_end(text))) return terminal.red(text);
  return text;
}

std::vector<std::string> column_keys(const RunsArguments& arguments, const Listed& listed) {
  if (arguments.columns.empty()) {
    return {"name",     "state", "end",     "model", "dataset", "how",
            "accuracy", "loss",  "seconds", "speed", "started", "tag"};
  }
  std::vector<std::string> keys{"name"};
  for (size_t begin = 0; begin <= arguments.columns.size();) {
    const size_t end = std::min(arguments.columns.find(',', begin), arguments.columns.size());
    const std::string key = records::known_key(arguments.columns.substr(begin, end - begin), listed.values);
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
    begin = end + 1;
  }
  return keys;
}

void print_table(const RunsArguments& arguments, const Listed& listed, const std::vector<size_t>& places) {
  const terminal::Terminal terminal = terminal::Terminal::detect();
  const std::vector<std::string> keys = column_keys(arguments, listed);
  std::vector<terminal::Table::Column> columns;
  for (const std::string& key : keys) {
    const records::RunKey* def = records::find_run_key(key);
    const std::vector<RunValue> values = values_at(listed.values, key);
    const bool number = std::any_of(values.begin(), values.end(), [](const RunValue& v) { return known(v.number); });
    columns.push_back({def == nullptr ? key : std::string(def->title),
                       number ? terminal::Table::Align::right : terminal::Table::Align::left});
  }
  terminal::Table table(columns);
  for (const size_t place : places) {
    std::vector<std::string> cells;
    for (const std::string& key : keys) {
      const auto found = listed.values[place].find(key);
      cells.push_back(found == listed.values[place].end() ? "" : shown_cell(terminal, key, found->second));
    }
    table.add(std::move(cells));
  }
  if (arguments.columns.empty()) table.drop_empty_columns();
  // A pipe gets one line for each run, for grep and awk.
  const bool screen = ::isatty(STDOUT_FILENO) == 1;
  terminal::write_out(screen ? table.text(terminal, std::max<size_t>(terminal::Terminal::width(), 60), 1)
                             : table.text(terminal));
}

int list_runs(const RunsArguments& arguments) {
  const Listed listed = read_runs(arguments.runs_dir);
  if (listed.folders.empty() && !arguments.json) {
    terminal::print("no run in '{}'; `lockstep train MODEL` starts one\n", arguments.runs_dir);
    return 0;
  }
  const std::vector<size_t> places = choose_places(arguments, listed);
  if (arguments.json) {
    std::vector<std::string> folders;
    std::vector<RunValues> values;
    for (const size_t place : places) {
      folders.push_back(listed.folders[place]);
      values.push_back(listed.values[place]);
    }
    terminal::write_out(runs_json(folders, values));
  } else if (places.empty()) {
    terminal::print("none of {} fits\n", terminal::counted(listed.folders.size(), "run"));
  } else {
    print_table(arguments, listed, places);
  }
  return 0;
}

/// Returns the folders of the runs: each argument is a folder, a name, or a filter, which has an operator.
std::vector<std::string> named_runs(const RunsArguments& arguments) {
  std::vector<std::string> folders;
  std::vector<std::string> filters;
  for (const std::string& word : arguments.runs) {
    if (word.find_first_of("=<>") != std::string::npos) {
      filters.push_back(word);
    } else {
      folders.push_back(run::find_run(word, arguments.runs_dir));
    }
  }
  if (filters.empty()) return folders;
  const Listed listed = read_runs(arguments.runs_dir);
  const records::RunFilter filter(records::RunFilter::terms_of_words(filters), listed.values);
  for (size_t i = 0; i < listed.folders.size(); ++i) {
    if (filter.matches(listed.values[i])) folders.push_back(listed.folders[i]);
  }
  if (folders.empty()) throw UsageError("no run fits the filter");
  return folders;
}

int tag_runs(const RunsArguments& arguments) {
  for (const std::string& folder : named_runs(arguments)) {
    records::RunLabels labels = records::read_labels(folder);
    if (arguments.remove) {
      std::erase(labels.tags, arguments.tag);
    } else {
      labels.tags.push_back(arguments.tag);
    }
    records::write_labels(folder, std::move(labels));
  }
  return 0;
}

int note_run(const RunsArguments& arguments) {
  const std::string folder = run::find_run(arguments.run, arguments.runs_dir);
  records::RunLabels labels = records::read_labels(folder);
  if (arguments.note.empty() && !arguments.remove) {
    terminal::print("{}\n", labels.note.empty() ? "(no note)" : labels.note);
    return 0;
  }
  labels.note = fmt::format("{}", fmt::join(arguments.note, " "));
  records::write_labels(folder, std::move(labels));
  return 0;
}

uint64_t size_of(const std::string& folder) {
  uint64_t bytes = 0;
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(folder, ignored)) {
    if (!entry.is_symlink(ignored) && entry.is_regular_file(ignored)) bytes += entry.file_size(ignored);
  }
  return bytes;
}

bool answered_yes(const std::string& question) {
  if (::isatty(STDIN_FILENO) == 0) throw UsageError("delete: nobody can answer here; --yes deletes without asking");
  terminal::print("{} [y/N] ", question);
  terminal::flush_out();
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

int delete_runs(const RunsArguments& arguments) {
  const std::vector<std::string> named = named_runs(arguments);
  const std::set<std::string> folders(named.begin(), named.end());
  uint64_t bytes = 0;
  for (const std::string& folder : folders) {
    const records::RunRecord run = records::read_run(folder);
    if (run.state == records::RunState::running) throw UsageError(folder + " is still training; stop it first");
    bytes += size_of(folder);
    if (!arguments.yes) terminal::print("{}\n", folder);
  }
  const std::string what =
      fmt::format("{} ({})", terminal::counted(folders.size(), "run"), terminal::bytes_text(bytes));
  if (!arguments.yes && !answered_yes("Delete " + what + "?")) {
    terminal::print("nothing deleted\n");
    return 1;
  }
  for (const std::string& folder : folders) run::remove_run(folder);
  terminal::print("deleted {}\n", what);
  return 0;
}

std::string keys_text() {
  std::string text = "Keys (and any setting, such as lr or options.pool):\n";
  for (const records::RunKey& key : records::run_keys()) text += fmt::format("  {:<15} {}\n", key.name, key.help);
  return text;
}

using Arguments = std::shared_ptr<RunsArguments>;

void add_runs_dir(const Command& app, const Arguments& arguments) {
  app.add_option("--runs-dir", arguments->runs_dir, "Folder of the runs [runs]").type_name("DIR");
}

void set_action(const Command& app, const Arguments& arguments, Invocation& invocation,
                int (*action)(const RunsArguments&)) {
  app.callback(
      [arguments, &invocation, action] { invocation.run = [arguments, action] { return action(*arguments); }; });
}

constexpr const char* kRunHelp = "Folders or names of runs, or filters, e.g. 'accuracy<0.5'";

void add_tag(const Command& runs, const Arguments& arguments, Invocation& invocation) {
  const Command app = runs.add_command("tag", "Tag runs, or remove a tag");
  app.add_option("TAG", arguments->tag, "A word, e.g. baseline").required();
  app.add_option("RUN", arguments->runs, kRunHelp).required();
  app.add_flag("--remove", arguments->remove, "Remove the tag");
  add_runs_dir(app, arguments);
  app.footer("Examples:\n  lockstep runs tag baseline lenet-1\n  lockstep runs tag --remove baseline lenet-1");
  set_action(app, arguments, invocation, tag_runs);
}

void add_note(const Command& runs, const Arguments& arguments, Invocation& invocation) {
  const Command app = runs.add_command("note", "Write, show or remove the note of a run");
  app.add_option("RUN", arguments->run, "Folder or name of a run").required();
  app.add_option("TEXT", arguments->note, "The note [show it]");
  app.add_flag("--remove", arguments->remove, "Remove the note");
  add_runs_dir(app, arguments);
  app.footer("Examples:\n  lockstep runs note lenet-1 'before the new schedule'\n  lockstep runs note lenet-1");
  set_action(app, arguments, invocation, note_run);
}

void add_delete(const Command& runs, const Arguments& arguments, Invocation& invocation) {
  const Command app = runs.add_command("delete", "Delete runs with all their files, after asking");
  app.add_option("RUN", arguments->runs, kRunHelp).required();
  app.add_flag("--yes", arguments->yes, "Delete without asking");
  add_runs_dir(app, arguments);
  app.footer(
      "A run that is training is never deleted.\n\n"
      "Examples:\n  lockstep runs delete lenet-1 lenet-2\n  lockstep runs delete tag=old --yes");
  set_action(app, arguments, invocation, delete_runs);
}

}  // namespace

void add_runs(const Command& program, Invocation& invocation) {
  const Command app = program.add_command("runs", "List runs: filter, sort, tag, note, delete");
  const auto arguments = std::make_shared<RunsArguments>();
  app.add_option("FILTER", arguments->terms, "Terms that must all hold: KEY=VALUE, with = != < <= > >=, or a word");
  app.add_option("--sort", arguments->sort, "Sort by a key, the smallest first [the newest run first]")
      .type_name("KEY");
  app.add_flag("--reverse", arguments->reverse, "Reverse the order");
  app.add_option("--columns", arguments->columns, "Keys to show, with commas between").type_name("KEYS");
  app.add_flag("--json", arguments->json, "Print JSON");
  add_runs_dir(app, arguments);
  app.footer(keys_text() +
             "\nA value may hold * for any characters, and commas between alternatives.\n\n"
             "Examples:\n"
             "  lockstep runs model=lenet 'accuracy>95%'\n"
             "  lockstep runs 'lr<0.01' dataset=mnist --sort accuracy --reverse\n"
             "  lockstep runs state=running\n"
             "  lockstep runs --columns batch,lr,accuracy");
  add_tag(app, arguments, invocation);
  add_note(app, arguments, invocation);
  add_delete(app, arguments, invocation);
  app.callback_without_command(
      [arguments, &invocation](const std::string&) { invocation.run = [arguments] { return list_runs(*arguments); }; });
}

}  // namespace lockstep::tools
