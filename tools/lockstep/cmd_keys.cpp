// lockstep keys: makes and shows the certificates by which the machines of a cluster authenticate each other.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "cluster/cluster_file.h"
#include "cluster/keys.h"
#include "command.h"
#include "command_line.h"
#include "lockstep/error.h"
#include "terminal/output.h"
#include "terminal/terminal.h"

namespace lockstep::tools {
namespace {

struct KeysArguments {
  std::string dir;
  std::string cluster;
  std::string node;
  std::string roles;
  bool shared = false;
};

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// Parses "worker:1,ps:0".
std::vector<cluster::Task> parse_roles(const std::string& text) {
  std::vector<cluster::Task> tasks;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    try {
      tasks.push_back(cluster::parse_task(text.substr(at, end - at)));
    } catch (const UsageError& error) {
      throw UsageError(std::string("--roles: ") + error.what());
    }
    at = end + 1;
  }
  return tasks;
}

std::vector<cluster::MadeKeys> make(const KeysArguments& given) {
  const int ways = (given.cluster.empty() ? 0 : 1) + (given.node.empty() ? 0 : 1) + (given.shared ? 1 : 0);
  if (ways != 1) {
    throw UsageError(
        "keys new: give one of --cluster FILE (keys for each machine of a cluster), --node NAME --roles LIST (keys for "
        "one "
        "machine) and --shared (one key with which any machine may act as any role)");
  }
  if (given.node.empty() != given.roles.empty()) {
    throw UsageError("keys new: --node NAME and --roles LIST go together: --node n3 --roles worker:2,evaluator:0");
  }
  if (given.shared) return cluster::make_shared_keys(given.dir);
  if (!given.node.empty()) return cluster::make_node_keys(given.dir, given.node, parse_roles(given.roles));
  return cluster::make_cluster_keys(given.dir, cluster::load_cluster_file(given.cluster));
}

int new_keys(const KeysArguments& arguments) {
  for (const cluster::MadeKeys& made : make(arguments)) {
    if (made.host.empty()) {
      terminal::print("{}: {}, {}, {} for every machine. Anyone who has these files can act as any role.\n",
                      made.folder, cluster::kAuthorityFile, cluster::kNodeFile, cluster::kNodeKeyFile);
    } else {
      terminal::print("{}: for machine {} ({})\n", made.folder, made.host, joined(made.roles));
    }
  }
  if (arguments.shared) {
    terminal::print("Copy these three files to {} on every machine", arguments.dir);
  } else {
    terminal::print("Copy each folder to the same place on its machine");
  }
  terminal::print(" and give --tls {} there. {}/{} signs new keys: keep it on this machine.\n", arguments.dir,
                  arguments.dir, cluster::kAuthorityKeyFile);
  return 0;
}

int show_keys(const KeysArguments& arguments) {
  const terminal::Terminal terminal = terminal::Terminal::detect();
  bool good = true;
  for (const cluster::KeyFacts& facts : cluster::read_keys(arguments.dir)) {
    const transport::CertificateFacts& certificate = facts.certificate;
    terminal::print("{}\n", terminal.bold(facts.path));
    terminal::print("  subject      {}{}\n", certificate.subject, certificate.authority ? " (authority)" : "");
    if (!certificate.roles.empty()) terminal::print("  roles        {}\n", joined(certificate.roles));
    if (!certificate.names.empty()) terminal::print("  names        {}\n", joined(certificate.names));
    terminal::print("  valid        {} to {}\n", certificate.not_before, certificate.not_after);
    terminal::print("  fingerprint  {}\n", certificate.fingerprint);
    for (const std::string& problem : facts.problems) terminal::print("  {} {}\n", terminal.red("wrong:"), problem);
    good = good && facts.problems.empty();
  }
  return good ? 0 : 1;
}

void add_new_keys(const Command& keys, const std::shared_ptr<KeysArguments>& arguments, Invocation& invocation) {
  const Command app = keys.add_command("new", "Make an authority and node keys; existing keys stay");
  app.add_option("DIR", arguments->dir, "Folder for the keys; created if missing").required();
  app.add_option("--cluster", arguments->cluster, "Make a folder DIR/HOST for each machine of a cluster file")
      .type_name("FILE");
  app.add_option("--node", arguments->node, "Make a folder DIR/NAME for one machine").type_name("NAME");
  app.add_option("--roles", arguments->roles, "Roles of --node, for example worker:1,ps:0").type_name("LIST");
  app.add_flag("--shared", arguments->shared, "Make one key for all machines and all roles");
  app.footer(
      "Examples:\n"
      "  lockstep keys new keys --cluster cluster.yaml            a folder for each machine: keys/n1, keys/n2\n"
      "  lockstep keys new keys --node n3 --roles worker:2        one more machine\n"
      "  lockstep keys new keys --shared                          one key for all");
  app.callback([arguments, &invocation] { invocation.run = [arguments] { return new_keys(*arguments); }; });
}

}  // namespace

void add_keys(const Command& program, Invocation& invocation) {
  const Command app = program.add_command("keys", "Make and show keys for encrypted connections");
  app.footer(
      "Examples:\n"
      "  lockstep keys new keys --cluster cluster.yaml\n"
      "  lockstep keys show keys\n"
      "  lockstep train lenet --cluster cluster.yaml --task worker:1 --tls keys");
  const auto arguments = std::make_shared<KeysArguments>();
  add_new_keys(app, arguments, invocation);

  const Command show =
      app.add_command("show", "Show subject, validity and fingerprint of the certificates in a folder");
  show.add_option("DIR", arguments->dir, "Folder made by `lockstep keys new`, or a copy of it").required();
  show.footer("Example:\n  lockstep keys show keys");
  show.callback([arguments, &invocation] { invocation.run = [arguments] { return show_keys(*arguments); }; });

  app.callback_without_command([&invocation](const std::string& help) {
    invocation.run = [help] {
      terminal::write_out(help);
      return 0;
    };
  });
}

}  // namespace lockstep::tools
