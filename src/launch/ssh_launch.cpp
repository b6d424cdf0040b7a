#include "launch/ssh_launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "authority/launcher_lines.h"

namespace lockstep::launch {
namespace {

/// Writes a line per file of the run's folder.
constexpr const char* kManifest = "find . -type f ! -name .lock -exec sha256sum {} +";

/// Options so that ssh asks no questions and notices a dead connection.
std::vector<std::string> ssh_words(const SshJob& job, const cluster::Node& node) {
  std::vector<std::string> words = job.ssh;
  for (const char* option :
       {"BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=5", "ServerAliveCountMax=3", "LogLevel=ERROR"}) {
    words.insert(words.end(), {"-o", option});
  }
  words.insert(words.end(), {"-T", "--", node.ssh});
  return words;
}

/// Runs in the folder of the node by /bin/sh, because the user's own shell may be any.
std::string in_folder(const cluster::Node& node, const std::string& script) {
  const std::string enter = node.dir.empty() ? "" : fmt::format("cd {} && ", shell_quoted(node.dir));
  return "exec /bin/sh -c " + shell_quoted(enter + script);
}

std::string quoted_words(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + shell_quoted(word);
  return text;
}

std::vector<std::string> role_argv(const SshJob& job, const cluster::Node& node, const cluster::Task& task) {
  std::vector<std::string> argv{job.program};
  argv.insert(argv.end(), job.words.begin(), job.words.end());
  argv.insert(argv.end(), {(job.resume ? "--resume=" : "--run-dir=") + job.run_dir, "--report=json"});
  if (!task.trains()) {
    argv.emplace_back("--threads=1");
  } else if (node.tasks.size() > 1) {
    argv.emplace_back("--wait-policy=block");  // other processes need the cores, too
  }
  return argv;
}

std::string remote_script(const SshJob& job, const cluster::Node& node, const cluster::Task& task) {
  const char* const answers = job.registers ? authority::kLauncherAnswers : "";
  return fmt::format("mkdir -p {} && exec env {} {}={} {} under-launcher -- {}", shell_quoted(job.run_dir),
                     shell_quoted("TF_CONFIG=" + tf_config_text(job.cluster.spec, task)), authority::kLauncherVariable,
                     answers, shell_quoted(job.program), quoted_words(role_argv(job, node, task)));
}

}  // namespace

std::string shell_quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string shell_word(const std::string& text) {
  constexpr const char* kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+:@%,";
  const bool plain = !text.empty() && text.find_first_not_of(kPlain) == std::string::npos;
  return plain ? text : shell_quoted(text);
}

std::string tf_config_text(const cluster::Spec& spec, const cluster::Task& task) {
  nlohmann::ordered_json cluster;
  for (const cluster::Role role :
       {cluster::Role::chief, cluster::Role::worker, cluster::Role::ps, cluster::Role::evaluator}) {
    if (!spec.of(role).empty()) cluster[std::string(name(role))] = spec.of(role);
  }
  const nlohmann::ordered_json config{{"cluster", cluster},
                                      {"task", {{"type", std::string(name(task.role))}, {"index", task.index}}}};
  return config.dump();
}

process::Command ssh_script(const SshJob& job, const cluster::Node& node, const std::string& script) {
  process::Command command;
  command.argv = ssh_words(job, node);
  command.argv.push_back(in_folder(node, script));
  return command;
}

std::vector<RoleProcess> ssh_roles(const SshJob& job) {
  std::vector<RoleProcess> roles;
  for (const cluster::Node& node : job.cluster.nodes) {
    for (const cluster::Task& task : node.tasks) {
      RoleProcess role{task, {}, true, node.ssh};
      role.command = ssh_script(job, node, remote_script(job, node, task));
      roles.push_back(std::move(role));
    }
  }
  return roles;
}

std::vector<HostCommands> ssh_collections(const SshJob& job) {
  std::vector<HostCommands> collections;
  const cluster::Task chief = job.cluster.spec.chief_task();
  const std::string folder = shell_quoted(job.run_dir);
  for (const bool last : {false, true}) {
    for (const cluster::Node& node : job.cluster.nodes) {
      const bool has_chief = std::find(node.tasks.begin(), node.tasks.end(), chief) != node.tasks.end();
      if (has_chief != last) continue;
      collections.push_back({node.ssh, (node.dir.empty() ? "" : node.dir + "/") + job.run_dir, node,
                             ssh_script(job, node, fmt::format("exec tar -C {} -cf - --exclude=.lock .", folder)),
                             ssh_script(job, node, fmt::format("cd {} && exec {}", folder, kManifest))});
    }
  }
  return collections;
}

process::Command ssh_sending(const SshJob& job, const cluster::Node& node, const std::string& file,
                             const std::string& name, bool keep) {
  const std::string there = job.run_dir + "/" + name;
  const std::string script = fmt::format("{}mkdir -p {} && cat > {}.new-$$ && mv {}.new-$$ {}",
                                         keep ? fmt::format("[ -e {} ] || {{ ", shell_quoted(there)) : "",
                                         shell_quoted(there.substr(0, there.rfind('/'))), shell_quoted(there),
                                         shell_quoted(there), shell_quoted(there)) +
                             (keep ? "; }" : "");
  process::Command command = ssh_script(job, node, script);
  command.argv.insert(command.argv.begin(), {"/bin/sh", "-c", "exec \"$@\" < \"$0\"", file});
  return command;
}

process::Command ssh_removal(const SshJob& job, const HostCommands& host, const std::string& manifest_sum) {
  const std::string folder = shell_quoted(job.run_dir);
  return ssh_script(job, host.node,
                    fmt::format("[ -e {0} ] || exit 0; [ \"$(cd {0} && {1} | LC_ALL=C sort | sha256sum)\" = {2} ] || "
                                "{{ echo 'it has changed since it was collected' >&2; exit 1; }}; exec rm -rf -- {0}",
                                folder, kManifest, shell_quoted(manifest_sum)));
}

}  // namespace lockstep::launch
