// lockstep data: lists and fetches data sets.
#include <memory>
#include <string>

#include "command.h"
#include "command_line.h"
#include "data/catalog.h"
#include "display/fetch_display.h"
#include "terminal/output.h"
#include "terminal/table.h"

namespace lockstep::tools {
namespace {

struct DataArguments {
  std::string name;
  std::string data;
};

int list_data(const DataArguments& arguments) {
  const terminal::Terminal terminal = terminal::Terminal::detect();
  terminal::Table table({{"data set"}, {"here"}, {"where, or how to get it"}, {"content"}});
  for (const data::CatalogEntry& entry : data::list(data::SourceOptions::from_environment(arguments.data))) {
    table.add({entry.name, entry.available ? terminal.green("yes") : "no",
               entry.folder.empty() ? entry.how : entry.folder, entry.description});
  }
  terminal::write_out(table.text(terminal));
  return 0;
}

int get_data(const DataArguments& arguments) {
  const terminal::Terminal terminal = terminal::Terminal::detect();
  const auto source = data::SourceOptions::from_environment(arguments.data);
  const std::string folder = data::fetch(arguments.name, source, display::fetch_display(terminal));
  if (folder.empty()) {
    terminal::print("{} needs no files\n", arguments.name);
  } else {
    terminal::print("{} is in {}\n", arguments.name, folder);
  }
  return 0;
}

void add_data_option(const Command& app, DataArguments& arguments) {
  app.add_option("--data", arguments.data,
                 "Folder to search first; then $LOCKSTEP_DATA, the cache and the system's folders")
      .type_name("DIR");
}

}  // namespace

void add_data(const Command& program, Invocation& invocation) {
  const Command app = program.add_command("data", "List and fetch data sets");
  app.footer("Examples:\n  lockstep data list\n  lockstep data get mnist");
  const auto arguments = std::make_shared<DataArguments>();

  const Command list = app.add_command("list", "List the known data sets and where they are");
  add_data_option(list, *arguments);
  list.callback([arguments, &invocation] { invocation.run = [arguments] { return list_data(*arguments); }; });

  const Command get = app.add_command("get", "Fetch a data set, unless it is on this machine");
  get.add_option("DATASET", arguments->name, "A name from `lockstep data list`").required();
  add_data_option(get, *arguments);
  get.footer("Example:\n  lockstep data get mnist");
  get.callback([arguments, &invocation] { invocation.run = [arguments] { return get_data(*arguments); }; });

  app.callback_without_command([&invocation](const std::string& help) {
    invocation.run = [help] {
      terminal::write_out(help);
      return 0;
    };
  });
}

}  // namespace lockstep::tools
