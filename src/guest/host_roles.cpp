#include "guest/host_roles.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "launch/host_command.h"
#include "launch/under_launcher.h"
#include "lockstep/error.h"

namespace lockstep::guest {
namespace {

constexpr int kFirstMasterPort = 29500;

const cluster::Node& chief_node(const cluster::ClusterFile& cluster) {
  const cluster::Task chief = cluster.spec.chief_task();
  return *std::find_if(cluster.nodes.begin(), cluster.nodes.end(), [&](const cluster::Node& node) {
    return std::find(node.tasks.begin(), node.tasks.end(), chief) != node.tasks.end();
  });
}

bool uses_port(const cluster::Spec& spec, int port) {
  const std::string ending = fmt::format(":{}", port);
  const std::vector<cluster::Task> tasks = spec.tasks();
  return std::any_of(tasks.begin(), tasks.end(),
                     [&](const cluster::Task& task) { return spec.address(task).ends_with(ending); });
}

}  // namespace

launch::SshJob job_on(const Hosts& hosts, const std::string& run_dir) {
  launch::SshJob job;
  job.cluster = cluster::load_cluster_file(hosts.file);
  job.ssh = hosts.ssh;
  job.program = hosts.program;
  job.foreign = true;
  std::random_device device;
  const std::string name = std::filesystem::absolute(run_dir).lexically_normal().filename().string();
  job.run_dir = fmt::format("runs/{}-{:08x}", name, device());
  return job;
}

Places places_of(const launch::SshJob& job) {
  Places places;
  places.cluster = job.cluster;
  places.one_host = false;
  places.master_host = chief_node(job.cluster).host;
  places.master_port = kFirstMasterPort;
  while (uses_port(job.cluster.spec, places.master_port)) ++places.master_port;
  places.hosts_file = job.run_dir + "/hosts";
  return places;
}

void send_hosts_file(const launch::SshJob& job, const std::string& file) {
  for (const cluster::Node& node : job.cluster.nodes) {
    try {
      launch::run_host_command(launch::ssh_sending(job, node, file, "hosts", false), [](std::string_view) {});
    } catch (const IoError& error) {
      throw IoError(fmt::format("host {}: {}", node.ssh, error.what()));
    }
  }
}

process::Command on_host(const launch::SshJob& job, const cluster::Node& node, const std::string& folder,
                         const Values& environment, const std::vector<std::string>& words) {
  std::string removed;
  std::string set;
  for (const auto& [name, value] : environment) {
    if (value.empty()) {
      removed += " -u " + name;
    } else {
      set += " " + launch::shell_quoted(name + "=" + value);
    }
  }
  std::string script = fmt::format("mkdir -p {} && exec env{}{} {} under-launcher --reap --",
                                   launch::shell_quoted(folder), removed, set, launch::shell_quoted(job.program));
  for (const std::string& word : words) script += " " + launch::shell_quoted(word);
  process::Command command = launch::ssh_script(job, node, script);
  command.hold_stdin = true;
  return command;
}

std::string left_on_host(const std::string& line) {
  const std::string_view begin = launch::kLeftBehind;
  return line.starts_with(begin) ? line.substr(begin.size()) : "";
}

}  // namespace lockstep::guest
