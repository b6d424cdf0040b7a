#include "launch/hand_out.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "checkpoint/checkpoint_store.h"
#include "launch/host_command.h"
#include "lockstep/error.h"

namespace lockstep::launch {
namespace {

constexpr const char* kSettings = "config.yaml";
constexpr const char* kCheckpoints = "checkpoints";

void send(const SshJob& job, const cluster::Node& node, const std::string& folder, const std::string& name, bool keep) {
  try {
    run_host_command(ssh_sending(job, node, folder + "/" + name, name, keep), [](std::string_view) {});
  } catch (const Error& error) {
    throw IoError(fmt::format("{}: cannot send {} to it: {}", node.ssh, name, error.what()));
  }
}

}  // namespace

void hand_out(const SshJob& job, const std::string& folder) {
  const cluster::Task chief = job.cluster.spec.chief_task();
  const auto checkpoints = checkpoint::CheckpointStore(folder + "/" + kCheckpoints).list();
  for (const cluster::Node& node : job.cluster.nodes) {
    const bool has_chief = std::find(node.tasks.begin(), node.tasks.end(), chief) != node.tasks.end();
    send(job, node, folder, kSettings, has_chief);
    if (!has_chief || checkpoints.empty()) continue;
    const std::string newest = std::filesystem::path(checkpoints.back().path).filename().string();
    send(job, node, folder, std::string(kCheckpoints) + "/" + newest, true);
  }
}

}  // namespace lockstep::launch
