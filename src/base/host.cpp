#include "base/host.h"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>

#include "base/hash.h"

namespace lockstep::base {

std::optional<OwnNode> own_node() {
  const auto text = [](const char* name) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): no thread sets them
    return std::string(value == nullptr ? "" : value);
  };
  const auto number = [&](const char* name) { return std::strtod(text(name).c_str(), nullptr); };
  OwnNode node{text("LOCKSTEP_NODE"), number("LOCKSTEP_NODE_CORES"), number("LOCKSTEP_NODE_MEMORY"),
               text("LOCKSTEP_NODE_CPU_GROUP"), text("LOCKSTEP_NODE_MEMORY_GROUP")};
  if (node.name.empty() || !(node.cores > 0)) return std::nullopt;
  return node;
}

std::string host_name() {
  if (const std::optional<OwnNode> node = own_node()) return node->name;
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

uint32_t machine_number() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  if (id.empty()) return 0;
  return hashed32(id) % ((1U << 24U) - 1) + 1;
}

}  // namespace lockstep::base
