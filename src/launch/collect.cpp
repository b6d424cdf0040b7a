#include "launch/collect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <functional>
#include <optional>

#include "launch/new_folder.h"
#include "launch/sha256.h"
#include "lockstep/error.h"
#include "process/line_reader.h"

namespace lockstep::launch {
namespace {

using Output = std::function<void(std::string_view)>;

constexpr std::chrono::minutes kLongestSilence{10};
constexpr std::chrono::hours kLongest{6};
constexpr size_t kLongestManifest = size_t{64} << 20;

/// Reads the available bytes of a non-blocking descriptor. Returns false at its end.
bool read_available(int fd, const Output& sink) {
  std::array<char, 65536> buffer{};
  while (fd >= 0) {
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return true;
    if (count <= 0) return false;
    sink({buffer.data(), static_cast<size_t>(count)});
  }
  return false;
}

/// Runs a command to its end and passes on its output. If it fails, throws IoError with its first line on standard
/// error; later lines mostly follow from that one.
void run_command(const process::Command& command, const Output& output) {
  process::Child child(command);
  std::string first;
  const auto keep = [&](const std::string& line) {
    if (first.empty()) first = line;
  };
  const auto deadline = std::chrono::steady_clock::now() + kLongest;
  bool open = true;
  std::optional<process::Ending> ending;
  while (!(ending = child.reap())) {
    std::array<pollfd, 3> fds{{{child.end_fd(), POLLIN, 0},
                               {child.fd(process::Stream::err), POLLIN, 0},
                               {open ? child.fd(process::Stream::out) : -1, POLLIN, 0}}};
    constexpr int kSilence = std::chrono::milliseconds(kLongestSilence).count();
    if (poll(fds.data(), fds.size(), kSilence) == 0)
      throw IoError(fmt::format("no answer for {} minutes", kLongestSilence.count()));
    if (std::chrono::steady_clock::now() > deadline)
      throw IoError(fmt::format("not finished after {} hours", kLongest.count()));
    child.read(process::Stream::err, keep);
    open = open && read_available(child.fd(process::Stream::out), output);
  }
  if (open) read_available(child.fd(process::Stream::out), output);
  child.read_rest(process::Stream::err, keep);
  if (!ending->ok()) throw IoError(first.empty() ? ending->text() : process::printable(first));
}

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
  run_command(command, [&](std::string_view bytes) {
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
  // The chief writes the run's own files. In an all-reduce every worker may lead.
  return here(spec.chief_task()) ||
         (spec.ps.empty() &&
          std::any_of(node.tasks.begin(), node.tasks.end(), [](const cluster::Task& task) { return task.trains(); }));
}

/// Throws naming the first file that no role of the host writes, unless it is the one `taken` from the host that writes
/// it: hosts may share a folder.
void check_own(const SshJob& job, const cluster::Node& node, const FileSums& files, const FileSums& taken) {
  size_t foreign = 0;
  std::string first;
  for (const auto& [path, sum] : files) {
    const auto same = taken.find(path);
    if (is_own(job, node, path) || (same != taken.end() && same->second == sum)) continue;
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
  run_command(host.archive, [&](std::string_view bytes) { reader.feed(bytes); });
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
    return !attempt(*one.first, [&] { check_own(job, one.first->node, one.second.files, taken); });
  });
  if (!remove) return problems;
  // Hosts may share a folder, so remove none before all have been collected.
  for (const auto& [host, manifest] : arrived) {
    attempt(*host, [&, &host = host, &manifest = manifest] {
      run_command(ssh_removal(job, *host, manifest.sum()), [](std::string_view) {});
    });
  }
  return problems;
}

}  // namespace lockstep::launch
