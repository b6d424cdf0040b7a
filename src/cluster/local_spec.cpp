#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <set>

#include "base/address.h"
#include "base/file.h"
#include "base/random.h"
#include "cluster/cluster_file.h"
#include "lockstep/error.h"

namespace lockstep::cluster {
namespace {

constexpr int kPortSpan = 12000;
constexpr int kLeastPort = 1024;
constexpr size_t kMostLoopbackNodes = 250;

/// Returns the first of the system's ports for outgoing connections.
int first_outgoing_port() {
  std::ifstream file("/proc/sys/net/ipv4/ip_local_port_range");
  int first = 0;
  return file >> first && first > kLeastPort + 1000 ? first : 32768;
}

bool is_free(const std::string& host, int port) {
  const base::FileHandle handle(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!handle.open()) throw IoError("cannot open a socket on this machine");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  ::inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  return ::bind(handle.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

/// Hands out each free port once, from a random start: two launchers rarely try the same ports at the same time.
class FreePorts {
 public:
  FreePorts()
      : end_(first_outgoing_port()),
        begin_(std::max(kLeastPort, end_ - kPortSpan)),
        random_(static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()),
                static_cast<uint64_t>(::getpid())) {}

  std::string next(const std::string& host) {
    for (int attempt = 0; attempt < kPortSpan; ++attempt) {
      const int port = begin_ + static_cast<int>(random_.below(static_cast<uint32_t>(end_ - begin_)));
      if (taken_.contains(port) || !is_free(host, port)) continue;
      taken_.insert(port);
      return base::join_address(host, port);
    }
    throw IoError(fmt::format("found no free port on {} from {} to {}", host, begin_, end_ - 1));
  }

 private:
  int end_;
  int begin_;
  base::Sequence random_;
  std::set<int> taken_;
};

std::vector<std::vector<Role>> groups_of(const LocalCluster& wanted) {
  if (wanted.layout.empty()) {
    std::vector<Role> all(static_cast<size_t>(wanted.ps), Role::ps);
    all.insert(all.end(), static_cast<size_t>(wanted.workers), Role::worker);
    if (wanted.network.empty()) return {all};
    std::vector<std::vector<Role>> each;
    for (const Role role : all) each.push_back({role});
    return each;
  }
  std::vector<std::vector<Role>> groups;
  try {
    groups = parse_layout(wanted.layout);
  } catch (const UsageError& error) {
    throw UsageError(std::string("layout: ") + error.what());
  }
  if (groups.size() > kMostLoopbackNodes) {
    throw UsageError(
        fmt::format("layout: has {} nodes; at most {} fit on this machine", groups.size(), kMostLoopbackNodes));
  }
  return groups;
}

}  // namespace

ClusterFile local_cluster(const LocalCluster& wanted) {
  std::vector<std::vector<Role>> groups = groups_of(wanted);
  const auto has_evaluator = [](const std::vector<Role>& group) {
    return std::find(group.begin(), group.end(), Role::evaluator) != group.end();
  };
  if (wanted.evaluator && !groups.empty() && std::none_of(groups.begin(), groups.end(), has_evaluator)) {
    groups.back().push_back(Role::evaluator);
  }
  ClusterFile cluster;
  FreePorts ports;
  const bool own = !wanted.network.empty();
  for (size_t node = 0; node < groups.size(); ++node) {
    Node& here = cluster.nodes.emplace_back();
    here.host = fmt::format("{}.{}", own ? wanted.network : "127.0.0", node + 1);
    for (const Role role : groups[node]) {
      std::vector<std::string>& addresses = cluster.spec.of(role);
      const auto port = kFirstPort + static_cast<int>(here.tasks.size());
      here.tasks.push_back({role, static_cast<int>(addresses.size())});
      addresses.push_back(own ? base::join_address(here.host, port) : ports.next(here.host));
    }
  }
  if (const std::optional<Problem> problem = find_problem(cluster.spec)) {
    throw UsageError(fmt::format("{}: {}", wanted.layout.empty() ? "workers" : "layout", problem->text));
  }
  const auto members = static_cast<int>(cluster.spec.members().size());
  if (!wanted.layout.empty() && wanted.workers != 0 && wanted.workers != members) {
    throw UsageError(fmt::format("workers: {} does not fit the layout '{}', which has {}; give only one of them",
                                 wanted.workers, wanted.layout, members));
  }
  return cluster;
}

Spec local_spec(const LocalCluster& wanted) { return local_cluster(wanted).spec; }

}  // namespace lockstep::cluster
