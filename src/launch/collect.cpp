#include "launch/collect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "launch/host_command.h"
#include "launch/new_folder.h"
#include "launch/sha256.h"
#include "lockstep/error.h"
#include "process/line_reader.h"

namespace lockstep::launch {
namespace {

constexpr size_t kLongestManifest = size_t{64} << 20;

struct Manifest {
  FileSums files;
  std::vector<std::string> lines;  ///< as the host wrote them

  /// Adds a line "SUM  ./PATH" or "SUM *./PATH".
  void add(const std::string& line) {
    constexpr size_t kSum = 64;
    if (line.size() < kSum + 3 || line.find_first_not_of("0123456789abcdef") != kSum) {
      throw DataError(fmt::format("its list of files has '{}', not a checksum and a name", process::printable(line)));
    }
    files[safe_path(std::string_view(line).substr(kSum + 2))] = line.substr(0, kSum);
    lines.push_back(line + "\n");
  }

  /// SHA-256 of the sorted lines, as `sha256sum` prints it.
  [[nodiscard]] std::string sum() const {
    std::vector<std::string> sorted = lines;
    std::sort(sorted.begin(), sorted.end());
    Sha256 sum;
    for (const std::string& line : sorted) sum.add(line);
    return sum.hex() + "  -";
  }
};

Manifest read_manifest(const process::Command& command) {
  std::string text;
  run_host_command(command, [&](std::string_view bytes) {
    if (text.size() + bytes.size() > kLongestManifest) throw DataError("its list of files is too long");
    text += bytes;
  });
  Manifest manifest;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    manifest.add(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return manifest;
}

/// Names the first file that differs; nothing if none does.
void check_arrived(const FileSums& arrived, const FileSums& stated) {
  size_t missing = 0;
  std::string first;
  const auto count = [&](const std::string& path) {
    if (missing++ == 0) first = path;
  };
  for (const auto& [path, sum] : stated) {
    const auto found = arrived.find(path);
    if (found == arrived.end() || found->second != sum) count(path);
  }
  for (const auto& [path, sum] : arrived) {
    if (!stated.contains(path)) count(path);
  }
  if (missing == 0) return;
  throw DataError(fmt::format("{} of {} files are missing or differ, first '{}'", missing,
                              std::max(stated.size(), arrived.size()), process::printable(first)));
}

/// Refuses files of the launcher: they decide what `--resume` does, so no host may replace them.
void refuse_own_files(const FileSums& files) {
  for (const auto& [path, sum] : files) {
    const std::string name = path.substr(path.rfind('/') + 1);
    if (name == ".lock" || path == "launch-id" || path == "launch.yaml" || path.starts_with(NewFolder::kArriving))
      throw DataError(fmt::format("its archive has '{}', a file of the launcher", path));
  }
}

/// True for a name like "worker-1": the folder of a role of any cluster.
bool is_role_folder(const std::string& name) {
  const size_t dash = name.find('-');
  return dash != std::string::npos && cluster::find_role(name.substr(0, dash)) && dash + 1 < name.size() &&
         name.find_first_not_of("0123456789", dash + 1) == std::string::npos;
}

/// True if a role of the host writes that file of a run.
bool is_own(const SshJob& job, const cluster::Node& node, const std::string& path) {
  const auto here = [&](const cluster::Task& task) {
    return std::find(node.tasks.begin(), node.tasks.end(), task) != node.tasks.end();
  };
  const cluster::Spec& spec = job.cluster.spec;
  const std::string top = path.substr(0, path.find('/'));
  const std::vector<cluster::Task> tasks = spec.tasks();
  const auto role =
      std::find_if(tasks.begin(), tasks.end(), [&](const cluster::Task& task) { return task.folder() == top; });
  if (role != tasks.end()) return here(*role);
  if (is_role_folder(top)) return job.resume;  // the cluster may have been another one before
  if (job.foreign) return true;
  // The chief writes the run's own files. In an all-reduce every worker may lead.
  return here(spec.chief_task()) ||
         (spec.ps.empty() &&
          std::any_of(node.tasks.begin(), node.tasks.end(), [](const cluster::Task& task) { return task.trains(); }));
}

/// True for a file of a resumed run that the launcher handed out, or that is left from a role that was here before.
bool is_left_over(const SshJob& job, const std::string& path) {
  return job.resume && (path == "config.yaml" || is_role_folder(path.substr(0, path.find('/'))));
}

/// Throws naming the first file that no role of the host writes, unless it is the one `taken` from the host that writes
/// it: hosts may share a folder. Files that may be left over are a problem only if they would be removed.
void check_own(const SshJob& job, const cluster::Node& node, const FileSums& files, const FileSums& taken,
               bool remove) {
  size_t foreign = 0;
  std::string first;
  for (const auto& [path, sum] : files) {
    const auto same = taken.find(path);
    if (is_own(job, node, path) || (same != taken.end() && same->second == sum)) continue;
    if (!remove && is_left_over(job, path)) continue;
    if (foreign++ == 0) first = path;
  }
  if (foreign == 0) return;
  std::vector<std::string> roles;
  for (const cluster::Task& task : node.tasks) roles.push_back(task.str());
  throw DataError(fmt::format("{} of {} files are not collected, because {} does not write them; the first is '{}'",
                              foreign, files.size(), fmt::join(roles, ", "), process::printable(first)));
}

/// Collects the files that the host's roles write, and adds them to `taken`. Returns the list of all its files.
Manifest collect_host(const SshJob& job, const HostCommands& host, const std::string& folder, const TarLimits& limits,
                      FileSums& taken) {
  NewFolder arriving(folder);
  TarReader reader(arriving, limits);
  run_host_command(host.archive, [&](std::string_view bytes) { reader.feed(bytes); });
  reader.finish();
  refuse_own_files(arriving.files());
  Manifest manifest = read_manifest(host.manifest);
  check_arrived(arriving.files(), manifest.files);
  const auto own = [&](const std::string& path) { return is_own(job, host.node, path); };
  arriving.move_out(own);
  for (const auto& [path, sum] : manifest.files) {
    if (own(path)) taken[path] = sum;
  }
  return manifest;
}

}  // namespace

std::string collect(const SshJob& job, const std::string& folder, bool remove, const TarLimits& limits) {
  std::string problems;
  const auto attempt = [&](const HostCommands& host, const std::function<void()>& step) {
    try {
      step();
      return true;
    } catch (const Error& error) {
      problems += fmt::format("{}{}: {}; its files stay there in {}", problems.empty() ? "" : "; ", host.host,
                              error.what(), host.folder);
    }
    return false;
  };
  NewFolder::remove_leftovers(folder);
  FileSums taken;
  std::vector<std::pair<const HostCommands*, Manifest>> arrived;
  const std::vector<HostCommands> hosts = ssh_collections(job);
  for (const HostCommands& host : hosts) {
    attempt(host, [&] { arrived.emplace_back(&host, collect_host(job, host, folder, limits, taken)); });
  }
  std::erase_if(arrived, [&](const auto& one) {
    return !attempt(*one.first, [&] { check_own(job, one.first->node, one.second.files, taken, remove); });
  });
  if (!remove) return problems;
  // Hosts may share a folder, so remove none before all have been collected.
  for (const auto& [host, manifest] : arrived) {
    attempt(*host, [&, &host = host, &manifest = manifest] {
      run_host_command(ssh_removal(job, *host, manifest.sum()), [](std::string_view) {});
    });
  }
  return problems;
}

}  // namespace lockstep::launch
