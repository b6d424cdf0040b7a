#include "emulate/cluster.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "emulate/claims.h"
#include "emulate/network.h"
#include "emulate/owner.h"
#include "emulate/rights.h"
#include "lockstep/error.h"

namespace lockstep::emulate {
namespace {

constexpr size_t kMostNodes = 250;

std::vector<NodeSpec> checked(std::vector<NodeSpec> nodes) {
  if (const std::string why = why_no_emulation(); !why.empty()) {
    throw UsageError(fmt::format("emulate: {}; without --emulate the roles are processes of this machine", why));
  }
  if (nodes.empty() || nodes.size() > kMostNodes) {
    throw UsageError(fmt::format("emulate: {} nodes; 1 to {} are allowed", nodes.size(), kMostNodes));
  }
  return nodes;
}

/// Returns the first free "lockstep-PID-START-N-"; a process may have several clusters.
std::string free_prefix() {
  std::error_code ignored;
  for (int n = 1;; ++n) {
    std::string prefix = fmt::format("{}{}-", owner_prefix(), n);
    if (!std::filesystem::exists(fmt::format("{}/{}switch", kNamespaces, prefix), ignored)) return prefix;
  }
}

std::vector<LinkSpec> links_of(const std::vector<NodeSpec>& nodes) {
  std::vector<LinkSpec> links;
  for (const NodeSpec& node : nodes) links.push_back({node.rate, node.delay_seconds, node.loss});
  return links;
}

}  // namespace

class EmulatedCluster::Impl {
 public:
  explicit Impl(const std::vector<NodeSpec>& nodes)
      : specs(checked(nodes)),
        claim(specs, ClaimFile::Cores::choose),
        prefix(free_prefix()),
        network(prefix, links_of(specs)) {
    const std::string own = owner_prefix();
    for (size_t node = 0; node < specs.size(); ++node) {
      const std::string name = fmt::format("{}node{}", prefix.substr(own.size()), node + 1);
      groups.push_back(std::make_unique<ControlGroup>(
          name, GroupLimits{specs[node].cores, specs[node].memory_bytes, true, "emulate"}));
    }
  }

  std::vector<NodeSpec> specs;
  ClaimFile claim;
  std::string prefix;
  Network network;
  std::vector<std::unique_ptr<ControlGroup>> groups;
};

EmulatedCluster::EmulatedCluster(const std::vector<NodeSpec>& nodes) : impl_(std::make_unique<Impl>(nodes)) {}
EmulatedCluster::~EmulatedCluster() = default;

size_t EmulatedCluster::size() const { return impl_->specs.size(); }
std::string EmulatedCluster::name(size_t node) const { return fmt::format("node{}", node + 1); }
std::string EmulatedCluster::address(size_t node) const { return Network::address(node); }
const NodeSpec& EmulatedCluster::spec(size_t node) const { return impl_->specs.at(node); }

Seat EmulatedCluster::seat(size_t node) const {
  const NodeSpec& spec = impl_->specs.at(node);
  const ControlGroup& group = *impl_->groups[node];
  Seat seat;
  seat.network_namespace = impl_->network.namespace_path(node);
  seat.groups = group.files();
  if (const std::vector<int>& cores = impl_->claim.cores(); !cores.empty()) seat.cores = {cores[node]};
  seat.environment = {{"LOCKSTEP_NODE", name(node)},
                      {"LOCKSTEP_NODE_CORES", fmt::format("{}", spec.cores)},
                      {"LOCKSTEP_NODE_MEMORY", spec.memory_bytes > 0 ? fmt::format("{:.0f}", spec.memory_bytes) : ""},
                      {"LOCKSTEP_NODE_CPU_GROUP", group.usage_folder()},
                      {"LOCKSTEP_NODE_MEMORY_GROUP", group.memory_folder()}};
  return seat;
}

Throttling EmulatedCluster::throttling(size_t node) const { return impl_->groups.at(node)->throttling(); }
void EmulatedCluster::cut(size_t node) { impl_->network.set_up(node, false); }
void EmulatedCluster::restore(size_t node) { impl_->network.set_up(node, true); }
void EmulatedCluster::slow(size_t node, double share) {
  impl_->groups.at(node)->set_cores(impl_->specs[node].cores * share);
}

void remove_leftovers() {
  remove_leftover_claims();
  remove_leftover_networks();
  remove_leftover_groups();
}

}  // namespace lockstep::emulate
