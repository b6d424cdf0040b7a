// lockstep docs (hidden): prints the parts of docs/ that tables in the code generate; a test compares them with the
// files.
#include <fmt/ranges.h>

#include <filesystem>
#include <memory>
#include <string>

#include "base/file.h"
#include "command.h"
#include "command_line.h"
#include "inspect/describe.h"
#include "interchange/layer_kinds.h"
#include "lab/fields.h"
#include "lockstep/error.h"
#include "model_facts.h"
#include "ops/op_table.h"
#include "settings/settings.h"
#include "terminal/output.h"
#include "terminal/text.h"

namespace lockstep::tools {
namespace {

/// Escapes a bar, which would end a cell of a Markdown table.
std::string cell(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

void print_ops() {
  terminal::print("# Ops\n\nMade from src/ops/op_table.cpp by `lockstep docs ops`; do not edit.\n");
  for (int f = 0; f <= static_cast<int>(ops::Family::internal); ++f) {
    terminal::print("\n## {}\n\n| op | what it computes | gradient |\n|---|---|---|\n",
                    ops::name(static_cast<ops::Family>(f)));
    for (const ops::OpDef& def : ops::op_table()) {
      if (static_cast<int>(def.family) != f) continue;
      terminal::print("| `{}` | {} | {} |\n", def.name, cell(def.formula), def.gradient == nullptr ? "no" : "yes");
    }
  }
}

std::string kept(settings::Keep keep) {
  switch (keep) {
    case settings::Keep::fixed:
      return "no";
    case settings::Keep::free:
      return "yes";
    case settings::Keep::call_only:
      return "flag only";
  }
  return "";
}

void print_settings() {
  std::string_view group;
  for (const settings::SettingDef& def : settings::settings_table()) {
    if (def.group != group) {
      terminal::print(
          "\n### {}\n\n| flag | what it does | takes | default | can change on resume |\n|---|---|---|---|---|\n",
          def.group);
    }
    group = def.group;
    const std::string flag = def.name == "model" ? "MODEL" : fmt::format("--{}", def.name);
    const std::string value = settings::default_text(def);
    terminal::print("| `{}` | {} | {} | {} | {} |\n", flag, cell(def.help), cell(settings::allowed_text(def)),
                    value.empty() ? "" : "`" + value + "`", kept(def.keep));
  }
}

/// Returns "`units`: a whole number; `bias`: start values (zeros)".
std::string keys_text(const interchange::LayerKind& kind) {
  std::string text;
  for (const interchange::LayerKey& key : kind.keys) {
    text += fmt::format("{}`{}`: {}", text.empty() ? "" : "; ", key.name, key.takes);
    if (!key.fallback.empty()) text += fmt::format(" ({})", key.fallback);
  }
  return text;
}

std::string inputs_text(const interchange::LayerKind& kind) {
  if (kind.most_inputs < 0) return "any number";
  return kind.with_labels ? "1, and labels" : std::to_string(kind.least_inputs);
}

void print_layers() {
  std::string_view group;
  for (const interchange::LayerKind& kind : interchange::layer_kinds()) {
    if (kind.group != group) {
      terminal::print(
          "\n### {}\n\n| layer | what it computes | inputs | keys (default) | `layer: VALUE` sets "
          "|\n|---|---|---|---|---|\n",
          kind.group);
    }
    group = kind.group;
    terminal::print("| `{}` | {} | {} | {} | {} |\n", kind.name, cell(kind.help), inputs_text(kind),
                    cell(keys_text(kind)), kind.main.empty() ? "" : fmt::format("`{}`", kind.main));
  }
}

std::string options_text(const nn::ModelDef& model) {
  std::string text;
  for (const nn::ModelOption& option : model.options) {
    text += fmt::format("{}`{}={}`", text.empty() ? "" : "; ", option.name, option.default_value);
    if (!option.allowed.empty()) text += fmt::format(" ({})", fmt::join(option.allowed, ", "));
    if (!option.description.empty()) text += ": " + option.description;
  }
  return text;
}

void print_zoo() {
  terminal::print("| model | what it is | parameters | image | trains with | options |\n|---|---|---|---|---|---|\n");
  for (const nn::ModelDef& model : nn::zoo()) {
    terminal::print("| `{}` | {} | {} | {} | {} | {} |\n", model.name, cell(model.description),
                    terminal::grouped(inspect::parameter_count(model)), model.image.str(), training_text(model),
                    cell(options_text(model)));
  }
}

std::string_view unit_text(lab::Unit unit) {
  switch (unit) {
    case lab::Unit::share:
      return "share, 0 to 1";
    case lab::Unit::seconds:
      return "s";
    case lab::Unit::bytes:
      return "bytes";
    case lab::Unit::bytes_per_second:
      return "bytes/s";
    case lab::Unit::percent:
      return "%";
    case lab::Unit::count:
      return "count";
    case lab::Unit::times:
      return "ratio";
    case lab::Unit::none:
      break;
  }
  return "";
}

const char* varies_text(lab::Varies varies) {
  switch (varies) {
    case lab::Varies::time:
      return "time";
    case lab::Varies::seed:
      return "seed";
    case lab::Varies::nothing:
      break;
  }
  return "";
}

void print_fields() {
  terminal::print("| field | what it is | unit | per worker | varies with |\n|---|---|---|---|---|\n");
  for (const lab::FieldDef& def : lab::fields()) {
    terminal::print("| `{}` | {}: {} | {} | {} | {} |\n", def.name, def.title, cell(def.help), unit_text(def.unit),
                    def.of_worker ? "yes" : "", varies_text(def.varies));
  }
}

int write_man_pages(const Invocation& invocation, const std::string& folder) {
  if (folder.empty()) throw UsageError("docs: man needs a folder to write to");
  std::filesystem::create_directories(folder);
  for (const auto& [file, text] : invocation.man_pages()) base::write_whole_file(folder + "/" + file, text);
  return 0;
}

int run_docs(const std::string& what) {
  if (what == "ops") {
    print_ops();
  } else if (what == "settings") {
    print_settings();
  } else if (what == "layers") {
    print_layers();
  } else if (what == "zoo") {
    print_zoo();
  } else if (what == "fields") {
    print_fields();
  } else {
    throw UsageError("docs: '" + what + "' is not one of ops, settings, layers, zoo, fields, man");
  }
  return 0;
}

}  // namespace

void add_docs(const Command& program, Invocation& invocation) {
  const Command app = program.add_command("docs", "Generated parts of the documentation");
  app.hide();
  const auto what = std::make_shared<std::string>();
  const auto folder = std::make_shared<std::string>();
  app.add_option("WHAT", *what, "ops, settings, layers, zoo, fields or man").required();
  app.add_option("DIR", *folder, "Folder for the manual pages of man");
  app.callback([what, folder, &invocation] {
    invocation.run = [what, folder, &invocation] {
      return *what == "man" ? write_man_pages(invocation, *folder) : run_docs(*what);
    };
  });
}

}  // namespace lockstep::tools
