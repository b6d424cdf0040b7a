// lockstep keys: the certificates with which the machines of a cluster know each other.
#include <memory>
#include <string>
#include <vector>

#include "cluster/keys.h"
#include "command.h"
#include "command_line.h"
#include "output.h"
#include "terminal.h"

namespace lockstep::tools {
namespace {

struct KeysArguments {
  std::string dir;
  std::vector<std::string> nodes;
};

int new_keys(const KeysArguments& arguments) {
  const std::vector<std::string> folders = cluster::make_keys(arguments.dir, arguments.nodes);
  for (const std::string& folder : folders) {
    print("{}: {}, {}, {}\n", folder, cluster::kAuthorityFile, cluster::kNodeFile, cluster::kNodeKeyFile);
  }
  print("Copy those three files to a machine and give their folder as --tls. {}/{} signs new nodes: keep it here.\n",
        arguments.dir, cluster::kAuthorityKeyFile);
  return 0;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

int show_keys(const KeysArguments& arguments) {
  const Terminal terminal = Terminal::detect();
  bool good = true;
  for (const cluster::KeyFacts& facts : cluster::read_keys(arguments.dir)) {
    const cluster::CertificateFacts& certificate = facts.certificate;
    print("{}\n", terminal.bold(facts.path));
    print("  subject      {}{}\n", certificate.subject, certificate.authority ? " (authority)" : "");
    if (!certificate.names.empty()) print("  names        {}\n", joined(certificate.names));
    print("  valid        {} to {}\n", certificate.not_before, certificate.not_after);
    print("  fingerprint  {}\n", certificate.fingerprint);
    for (const std::string& problem : facts.problems) print("  {} {}\n", terminal.red("wrong:"), problem);
    good = good && facts.problems.empty();
  }
  return good ? 0 : 1;
}

void add_new_keys(const Command& keys, const std::shared_ptr<KeysArguments>& arguments, Invocation& invocation) {
  const Command app = keys.add_command("new", "Make an authority and node keys; existing ones stay");
  app.add_option("DIR", arguments->dir, "Folder for them; it is made where there is none").required();
  app.add_option("--node", arguments->nodes, "Also a folder DIR/NAME for this machine; may be repeated")
      .type_name("NAME")
      .repeated();
  app.footer(
      "Examples:\n"
      "  lockstep keys new keys                        one pair that all machines share\n"
      "  lockstep keys new keys --node n1 --node n2    a folder for each machine: keys/n1, keys/n2\n"
      "  lockstep keys new keys --node n3              one more, later");
  app.callback([arguments, &invocation] { invocation.run = [arguments] { return new_keys(*arguments); }; });
}

}  // namespace

void add_keys(const Command& program, Invocation& invocation) {
  const Command app = program.add_command("keys", "Keys for encrypted connections: make them, show them");
  app.footer(
      "Examples:\n"
      "  lockstep keys new keys\n"
      "  lockstep keys show keys\n"
      "  lockstep train lenet --cluster cluster.yaml --task worker:1 --tls keys");
  const auto arguments = std::make_shared<KeysArguments>();
  add_new_keys(app, arguments, invocation);

  const Command show = app.add_command("show", "Subject, validity and fingerprint of the certificates in a folder");
  show.add_option("DIR", arguments->dir, "Folder that `lockstep keys new` made, or one copied from it").required();
  show.footer("Example:\n  lockstep keys show keys");
  show.callback([arguments, &invocation] { invocation.run = [arguments] { return show_keys(*arguments); }; });

  app.callback_without_command([&invocation](const std::string& help) {
    invocation.run = [help] {
      write_out(help);
      return 0;
    };
  });
}

}  // namespace lockstep::tools
