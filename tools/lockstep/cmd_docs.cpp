// lockstep docs (hidden): the parts of docs/ that come from tables in the code; a test compares them with the files.
#include <memory>
#include <string>

#include "command.h"
#include "lockstep/error.h"
#include "ops/op_table.h"
#include "output.h"
#include "train/settings.h"

namespace lockstep::tools {
namespace {

/// Markdown's table cells end at a bar.
std::string cell(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

void print_ops() {
  print("# Ops\n\nMade from src/ops/op_table.cpp by `lockstep docs ops`; do not edit.\n");
  for (int f = 0; f <= static_cast<int>(ops::Family::internal); ++f) {
    print("\n## {}\n\n| op | what it computes | gradient |\n|---|---|---|\n", ops::name(static_cast<ops::Family>(f)));
    for (const ops::OpDef& def : ops::op_table()) {
      if (static_cast<int>(def.family) != f) continue;
      print("| `{}` | {} | {} |\n", def.name, cell(def.formula), def.gradient == nullptr ? "no" : "yes");
    }
  }
}

std::string kept(train::Keep keep) {
  switch (keep) {
    case train::Keep::fixed:
      return "no";
    case train::Keep::free:
      return "yes";
    case train::Keep::call_only:
      return "flag only";
  }
  return "";
}

void print_settings() {
  std::string_view group;
  for (const train::SettingDef& def : train::settings_table()) {
    if (def.group != group) {
      print("\n### {}\n\n| flag | what it does | takes | default | can change on resume |\n|---|---|---|---|---|\n",
            def.group);
    }
    group = def.group;
    const std::string flag = def.name == "model" ? "MODEL" : fmt::format("--{}", def.name);
    const std::string value = train::default_text(def);
    print("| `{}` | {} | {} | {} | {} |\n", flag, cell(def.help), cell(train::allowed_text(def)),
          value.empty() ? "" : "`" + value + "`", kept(def.keep));
  }
}

int run_docs(const std::string& what) {
  if (what == "ops") {
    print_ops();
  } else if (what == "settings") {
    print_settings();
  } else {
    throw UsageError("docs: '" + what + "' is not one of ops, settings");
  }
  return 0;
}

}  // namespace

void add_docs(CLI::App& program, Invocation& invocation) {
  CLI::App* app = program.add_subcommand("docs", "Generated parts of the documentation");
  app->group("");
  const auto what = std::make_shared<std::string>();
  app->add_option("WHAT", *what, "ops or settings")->required();
  app->callback([what, &invocation] { invocation.run = [what] { return run_docs(*what); }; });
}

}  // namespace lockstep::tools
