// lockstep data: which data sets are here, and getting them.
#include <memory>
#include <string>

#include "command.h"
#include "data/catalog.h"
#include "fetch_display.h"
#include "output.h"
#include "table.h"

namespace lockstep::tools {
namespace {

struct Arguments {
  std::string name;
  std::string data;
};

int run_list(const Arguments& arguments) {
  const Terminal terminal = Terminal::detect();
  Table table({{"data set"}, {"here"}, {"where, or how to get it"}, {"what it is"}});
  for (const data::CatalogEntry& entry : data::list(data::SourceOptions::from_environment(arguments.data))) {
    table.add({entry.name, entry.available ? terminal.green("yes") : "no",
               entry.folder.empty() ? entry.how : entry.folder, entry.description});
  }
  write_out(table.text(terminal));
  return 0;
}

int run_get(const Arguments& arguments) {
  const Terminal terminal = Terminal::detect();
  const auto source = data::SourceOptions::from_environment(arguments.data);
  const std::string folder = data::fetch(arguments.name, source, fetch_display(terminal));
  if (folder.empty()) {
    print("{} needs no files\n", arguments.name);
  } else {
    print("{} is in {}\n", arguments.name, folder);
  }
  return 0;
}

void add_data_option(CLI::App& app, Arguments& arguments) {
  app.add_option("--data", arguments.data, "Folder to look in first; then $LOCKSTEP_DATA, the cache, the system's")
      ->type_name("DIR");
}

}  // namespace

void add_data(CLI::App& program, Invocation& invocation) {
  CLI::App* app = program.add_subcommand("data", "Data sets: list them, get them");
  app->require_subcommand(0, 1);
  app->footer("Examples:\n  lockstep data list\n  lockstep data get mnist");
  const auto arguments = std::make_shared<Arguments>();

  CLI::App* list = app->add_subcommand("list", "The data sets known, and where they are");
  add_data_option(*list, *arguments);
  list->callback([arguments, &invocation] { invocation.run = [arguments] { return run_list(*arguments); }; });

  CLI::App* get = app->add_subcommand("get", "Make sure that a data set is on this machine");
  get->add_option("NAME", arguments->name, "Which: `lockstep data list` lists them")->required();
  add_data_option(*get, *arguments);
  get->footer("Example:\n  lockstep data get mnist");
  get->callback([arguments, &invocation] { invocation.run = [arguments] { return run_get(*arguments); }; });

  app->callback([app, &invocation] {
    if (app->get_subcommands().empty()) {
      invocation.run = [app] {
        write_out(app->help());
        return 0;
      };
    }
  });
}

}  // namespace lockstep::tools
