// Roles on other hosts over ssh: the commands that run here to start them there and to collect their files. On the host
// every role runs under `PROGRAM under-launcher` (under_launcher.h), which ends it when the connection ends. Plain
// values and free functions, any thread.
#pragma once

#include <string>
#include <vector>

#include "cluster/cluster_file.h"
#include "launch/supervisor.h"

namespace lockstep::launch {

struct SshJob {
  cluster::ClusterFile cluster;
  std::vector<std::string> ssh = {"ssh"};  ///< the command with its own options
  std::string program = "lockstep";        ///< on the hosts
  std::vector<std::string> words;          ///< arguments common to all roles, the command first
  std::string run_dir;                     ///< on each host, relative to its `dir`
  bool resume = false;
  bool registers = false;  ///< members ask the launcher who may train
  bool foreign = false;    ///< a program that is not ours: a role may write any file but those of other roles' folders
};

/// Returns the text in single quotes for a shell.
std::string shell_quoted(const std::string& text);
/// Returns the text as one word of a command that people copy: in quotes only if a shell needs them.
std::string shell_word(const std::string& text);

/// Returns the TF_CONFIG of a role: it describes the cluster without a file.
std::string tf_config_text(const cluster::Spec& spec, const cluster::Task& task);

std::vector<RoleProcess> ssh_roles(const SshJob& job);
/// Runs a script by /bin/sh in the folder of a node.
process::Command ssh_script(const SshJob& job, const cluster::Node& node, const std::string& script);

/// Commands that copy a host's files to this machine.
struct HostCommands {
  std::string host;    ///< host name as used by ssh
  std::string folder;  ///< run folder on the host
  cluster::Node node;
  process::Command archive;   ///< writes a tar archive of the folder
  process::Command manifest;  ///< writes a line "SHA-256  PATH" per file of it
};
/// Commands for every host, the chief's last. Lock files are left out.
std::vector<HostCommands> ssh_collections(const SshJob& job);
/// Writes a file of this machine to the run's folder on a host. `keep`: not if the host has one of that name.
process::Command ssh_sending(const SshJob& job, const cluster::Node& node, const std::string& file,
                             const std::string& name, bool keep);
/// Removes the run's folder on a host if the sorted lines of its manifest still have this `sha256sum`.
process::Command ssh_removal(const SshJob& job, const HostCommands& host, const std::string& manifest_sum);

}  // namespace lockstep::launch
