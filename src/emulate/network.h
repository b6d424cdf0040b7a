// The network of an emulated cluster: a namespace for each node, with its address on eth0, and one for the switch, a
// bridge with a port for each node. The host's own network does not see it, and two such networks do not see each other
// though their addresses are the same. Made by `ip` and `tc` (iproute2). Everything is removed with the object. For one
// thread.
#pragma once

#include <string>
#include <vector>

namespace lockstep::emulate {

struct LinkSpec {
  double rate = 0;           ///< bits per second each way; 0: no limit
  double delay_seconds = 0;  ///< delay of packets that the node sends
  double loss = 0;           ///< share of the packets that the node sends
};

class Network {
 public:
  /// Makes the network; names of namespaces begin with `prefix`. Throws UsageError if the kernel does not support delay
  /// and loss, IoError for other failures.
  Network(std::string prefix, const std::vector<LinkSpec>& links);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  [[nodiscard]] static std::string address(size_t node);
  /// Path of the namespace, for setns.
  [[nodiscard]] std::string namespace_path(size_t node) const;
  void set_up(size_t node, bool up);

 private:
  [[nodiscard]] std::string node_name(size_t node) const;
  void make_namespaces(size_t nodes);
  void make_switch(size_t nodes) const;
  void make_node(size_t node, const LinkSpec& link) const;
  void remove();

  std::string prefix_;
  std::vector<std::string> namespaces_;
};

/// The system's folder of named network namespaces.
inline constexpr const char* kNamespaces = "/run/netns";
void remove_leftover_networks();

}  // namespace lockstep::emulate
