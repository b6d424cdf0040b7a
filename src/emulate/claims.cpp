#include "emulate/claims.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

#include "base/cores.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "emulate/owner.h"

namespace lockstep::emulate {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolder = "/run/lockstep";
constexpr size_t kLongestCommand = 120;

/// Makes the folder, readable only by this user: a reader of a file could lock it and block all others.
void make_folder() {
  base::make_directories(kFolder);
  struct stat status {};
  if (::stat(kFolder, &status) != 0) base::throw_io_error("look at", kFolder, errno);
  if (status.st_uid != geteuid() || (status.st_mode & 0777) == S_IRWXU) return;
  if (::chmod(kFolder, S_IRWXU) != 0) base::throw_io_error("change the mode of", kFolder, errno);
}

/// Locks the claims: while it is held, no other process checks and claims.
base::LockFile lock() {
  constexpr std::chrono::seconds kPatience{10};
  make_folder();
  return base::LockFile::lock(fmt::format("{}/lock", kFolder), kPatience);
}

/// Returns this process's command on one line.
std::string own_command() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  while (!text.empty() && text.back() == '\0') text.pop_back();
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return text.size() <= kLongestCommand ? text : text.substr(0, kLongestCommand) + " ...";
}

Claim read_claim(const std::string& path) {
  std::ifstream file(path);
  Claim claim;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key;
    words >> key;
    if (key == "process") words >> claim.process;
    if (key == "within") words >> claim.within;
    if (key == "frame") claim.frame = true;
    if (key == "command") std::getline(words >> std::ws, claim.command);
    ClaimedNode node;
    if (key == "node" && words >> node.cores >> node.memory_bytes >> node.core) claim.nodes.push_back(node);
  }
  return claim;
}

std::string text_of(const Claim& claim) {
  std::string text = fmt::format("process {}\nwithin {}\ncommand {}\n", claim.process, claim.within, claim.command);
  if (claim.frame) text += "frame\n";
  for (const ClaimedNode& node : claim.nodes) {
    text += fmt::format("node {} {:.0f} {}\n", node.cores, node.memory_bytes, node.core);
  }
  return text;
}

std::vector<std::string> claim_files() {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(kFolder, ignored)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

/// Chooses a core of the system for each node, given the load of others.
std::vector<int> choose_cores(const std::vector<NodeSpec>& nodes, const std::vector<Claim>& others) {
  const int count = base::available_cores();
  std::vector<int> cores;
  for (int place = 0; place < count; ++place) {
    const std::vector<int> share = base::share_of_cores(place, count);
    if (share.size() != 1) return {};
    cores.push_back(share.front());
  }
  std::vector<int> chosen;
  for (const size_t place : place_on_cores(nodes, cores.size(), load_of(others, cores))) chosen.push_back(cores[place]);
  return chosen;
}

}  // namespace

std::vector<Claim> claims() {
  std::vector<Claim> found;
  for (const std::string& name : claim_files()) {
    const std::string path = fmt::format("{}/{}", kFolder, name);
    if (!is_owned(name) || take_leftover(path)) continue;
    Claim claim = read_claim(path);
    if (claim.process > 0) found.push_back(std::move(claim));
  }
  return found;
}

std::vector<double> load_of(const std::vector<Claim>& others, const std::vector<int>& cores) {
  std::vector<double> load(cores.size(), 0);
  for (const Claim& other : others) {
    if (other.frame) continue;
    for (const ClaimedNode& node : other.nodes) {
      for (size_t i = 0; i < cores.size(); ++i) {
        if (node.core == cores[i]) load[i] += node.cores;
        if (node.core < 0) load[i] += node.cores / static_cast<double>(cores.size());
      }
    }
  }
  return load;
}

ClaimFile::ClaimFile(const std::vector<NodeSpec>& nodes, Cores cores) {
  const base::LockFile held = lock();
  const std::vector<Claim> others = claims();
  Claim claim{getpid(), 0, own_command(), {}, cores == Cores::leave};
  for (const Claim& other : others) {
    if (other.process == getppid()) claim.within = other.process;
  }
  if (claim.within == 0) check_beside(nodes, others, base::available_cores(), base::machine_memory());
  if (cores == Cores::choose) cores_ = choose_cores(nodes, others);
  for (size_t i = 0; i < nodes.size(); ++i) {
    claim.nodes.push_back({nodes[i].cores, nodes[i].memory_bytes, cores_.empty() ? -1 : cores_[i]});
  }
  std::error_code ignored;
  for (int n = 1; path_.empty() || fs::exists(path_, ignored); ++n) {
    path_ = fmt::format("{}/{}{}", kFolder, owner_prefix(), n);
  }
  base::write_whole_file(path_, text_of(claim));
  held_ = hold(path_);
}

ClaimFile::~ClaimFile() {
  std::error_code ignored;
  fs::remove(path_, ignored);
}

void remove_leftover_claims() {
  std::error_code ignored;
  if (!fs::exists(kFolder, ignored)) return;
  for (const std::string& name : claim_files()) {
    const std::string path = fmt::format("{}/{}", kFolder, name);
    if (const auto taken = take_leftover(path)) fs::remove(path, ignored);
  }
}

}  // namespace lockstep::emulate
