#include "base/host.h"

#include <unistd.h>

#include <array>
#include <fstream>

namespace lockstep::base {

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

uint32_t machine_number() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  if (id.empty()) return 0;
  uint32_t hash = 2166136261U;  // FNV-1a
  for (const char c : id) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash % ((1U << 24U) - 1) + 1;
}

}  // namespace lockstep::base
