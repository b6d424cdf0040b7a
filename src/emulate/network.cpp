#include "emulate/network.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "emulate/owner.h"
#include "lockstep/error.h"
#include "process/child_process.h"

namespace lockstep::emulate {
namespace {

namespace fs = std::filesystem;

/// Runs a helper program and returns its error text; empty if it succeeded.
std::string error_of(process::Command command, const std::string& input = "") {
  command.hold_stdin = true;
  process::Child child(command);
  child.write(input);
  child.close_input();
  std::string said;
  const auto keep = [&](const std::string& line) {
    if (said.empty()) said = line;
  };
  const auto ignore = [](const std::string&) {};
  std::optional<process::Ending> ending;
  while (!ending) {
    pollfd end{child.end_fd(), POLLIN, 0};
    constexpr int kLookMilliseconds = 100;
    (void)poll(&end, 1, kLookMilliseconds);
    child.read(process::Stream::out, ignore);
    child.read(process::Stream::err, keep);
    ending = child.reap();
  }
  child.read_rest(process::Stream::err, keep);
  if (ending->ok()) return "";
  return said.empty() ? ending->text() : said;
}

std::string error_of(const std::vector<std::string>& words, const std::string& input = "") {
  process::Command command;
  command.argv = words;
  return error_of(command, input);
}

/// Turns IPv6 off for interfaces added later: its automatic packets would count as the nodes' traffic.
void keep_quiet(const std::string& name_space) {
  process::Command command;
  command.argv = {"sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6"};
  command.network_namespace = fmt::format("{}/{}", kNamespaces, name_space);
  (void)error_of(command);  // a system without IPv6 is fine, too
}

void must(const std::vector<std::string>& words, const std::string& input = "") {
  std::string problem;
  try {
    problem = error_of(words, input);
  } catch (const IoError& error) {
    throw IoError(fmt::format("{}; emulated clusters need iproute2 (Debian package iproute2)", error.what()));
  }
  if (!problem.empty()) throw IoError(fmt::format("cannot make an emulated network: {}: {}", words.front(), problem));
}

std::string port(size_t node) { return fmt::format("port{}", node + 1); }

/// Returns the arguments of a token bucket. It passes bursts of a few milliseconds and queues another 50.
std::vector<std::string> bucket(double rate) {
  constexpr double kBurstSeconds = 0.002;
  constexpr double kLeastBurst = 128 * 1024;  // larger than any packet before segmentation
  const double burst = std::max(kLeastBurst, rate / 8 * kBurstSeconds);
  return {"tbf", "rate", fmt::format("{:.0f}bit", rate), "burst", fmt::format("{:.0f}", burst), "latency", "50ms"};
}

void add_queue(const std::string& name_space, const std::string& device, const std::vector<std::string>& place,
               const std::vector<std::string>& kind) {
  std::vector<std::string> words{"tc", "-n", name_space, "qdisc", "add", "dev", device};
  words.insert(words.end(), place.begin(), place.end());
  words.insert(words.end(), kind.begin(), kind.end());
  must(words);
}

/// Adds delay and loss for packets that a node sends. Its other queues are below, at 1:1.
void add_netem(const std::string& name_space, const LinkSpec& link) {
  // Room for packets in flight at 10 Gbit/s.
  const auto limit = static_cast<uint64_t>(1000 + link.delay_seconds * 1e6);
  const std::string problem = error_of({"tc", "-n", name_space, "qdisc", "add", "dev", "eth0", "root", "handle",
                                        "1:", "netem", "delay", fmt::format("{:.0f}us", link.delay_seconds * 1e6),
                                        "loss", fmt::format("{:g}%", link.loss * 100), "limit", std::to_string(limit)});
  if (problem.empty()) return;
  const bool lacking =
      problem.find("kind is unknown") != std::string::npos || problem.find("No such file") != std::string::npos;
  if (!lacking) throw IoError(fmt::format("cannot make an emulated network: tc: {}", problem));
  throw UsageError(
      "emulate: delay and loss need the kernel's network emulator (netem, CONFIG_NET_SCH_NETEM), which this kernel "
      "lacks; cores, memory and rate do without");
}

void remove_namespace(const std::string& name) {
  const std::string path = fmt::format("{}/{}", kNamespaces, name);
  (void)umount2(path.c_str(), MNT_DETACH);
  (void)unlink(path.c_str());
}

}  // namespace

Network::Network(std::string prefix, const std::vector<LinkSpec>& links) : prefix_(std::move(prefix)) {
  try {
    make_namespaces(links.size());
    make_switch(links.size());
    for (size_t node = 0; node < links.size(); ++node) make_node(node, links[node]);
  } catch (...) {
    remove();
    throw;
  }
}

Network::~Network() { remove(); }

void Network::remove() {
  for (const std::string& name : namespaces_) remove_namespace(name);
}

std::string Network::address(size_t node) { return fmt::format("10.77.0.{}", node + 1); }
std::string Network::node_name(size_t node) const { return fmt::format("{}node{}", prefix_, node + 1); }
std::string Network::namespace_path(size_t node) const { return fmt::format("{}/{}", kNamespaces, node_name(node)); }

void Network::make_namespaces(size_t nodes) {
  namespaces_ = {prefix_ + "switch"};
  for (size_t node = 0; node < nodes; ++node) namespaces_.push_back(node_name(node));
  std::string batch;
  for (const std::string& name : namespaces_) batch += fmt::format("netns add {}\n", name);
  must({"ip", "-batch", "-"}, batch);
  for (const std::string& name : namespaces_) keep_quiet(name);
  batch.clear();
  for (size_t node = 0; node < nodes; ++node) {
    batch += fmt::format("link add {} netns {} type veth peer name eth0 netns {}\n", port(node), namespaces_.front(),
                         node_name(node));
  }
  must({"ip", "-batch", "-"}, batch);
}

void Network::make_switch(size_t nodes) const {
  std::string batch = "link add switch type bridge forward_delay 0 mcast_snooping 0\nlink set switch up\n";
  for (size_t node = 0; node < nodes; ++node) {
    batch += fmt::format("link set {} master switch up\n", port(node));
  }
  must({"ip", "-n", namespaces_.front(), "-batch", "-"}, batch);
}

void Network::make_node(size_t node, const LinkSpec& link) const {
  must({"ip", "-n", node_name(node), "-batch", "-"},
       fmt::format("link set lo up\nlink set eth0 up\naddr add {}/24 dev eth0\n", address(node)));
  const bool netem = link.delay_seconds > 0 || link.loss > 0;
  if (netem) add_netem(node_name(node), link);
  if (link.rate <= 0) return;
  const std::vector<std::string> inside = netem ? std::vector<std::string>{"parent", "1:1", "handle", "10:"}
                                                : std::vector<std::string>{"root", "handle", "1:"};
  add_queue(node_name(node), "eth0", inside, bucket(link.rate));
  add_queue(namespaces_.front(), port(node), {"root", "handle", "1:"}, bucket(link.rate));
}

void Network::set_up(size_t node, bool up) {
  must({"ip", "-n", namespaces_.front(), "link", "set", port(node), up ? "up" : "down"});
}

void remove_leftover_networks() {
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(kNamespaces, ignored)) {
    const std::string name = entry.path().filename().string();
    if (owner_is_gone(name)) found.push_back(name);
  }
  for (const std::string& name : found) remove_namespace(name);
}

}  // namespace lockstep::emulate
