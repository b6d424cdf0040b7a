#include "emulate/rights.h"

#include <fmt/format.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "emulate/control_group.h"
#include "lockstep/error.h"

namespace lockstep::emulate {
namespace {

/// Returns the effective capabilities, one bit each.
uint64_t capabilities() {
  std::ifstream file("/proc/thread-self/status");
  for (std::string line; std::getline(file, line);) {
    constexpr std::string_view kKey = "CapEff:";
    if (line.starts_with(kKey)) return std::stoull(line.substr(kKey.size()), nullptr, 16);
  }
  return 0;
}

/// Tries to make a namespace, in a child process that ends at once. Returns 0 or the error.
int try_network_namespace() {
  const pid_t child = fork();
  if (child < 0) return errno;
  if (child == 0) _exit(unshare(CLONE_NEWNET | CLONE_NEWNS) == 0 ? 0 : errno);
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return errno;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : EPERM;
}

}  // namespace

std::string why_no_networks() {
  if (geteuid() != 0) return "network namespaces need root";
  const uint64_t has = capabilities();
  for (const auto& [bit, name] :
       {std::pair(CAP_SYS_ADMIN, "CAP_SYS_ADMIN"), std::pair(CAP_NET_ADMIN, "CAP_NET_ADMIN")}) {
    if ((has >> static_cast<unsigned>(bit) & 1U) == 0) return fmt::format("network namespaces need {}", name);
  }
  const int error = try_network_namespace();
  if (error == 0) return "";
  return fmt::format("network namespaces cannot be made ({})", std::generic_category().message(error));
}

std::string why_no_control_groups() {
  try {
    const ControlGroup probe("probe", {.cores = 1, .accounted = true});
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

std::string why_no_emulation() {
  std::string why = why_no_networks();
  return why.empty() ? why_no_control_groups() : why;
}

}  // namespace lockstep::emulate
