#include "base/memory.h"

#include <unistd.h>

#include <array>
#include <cstdio>

#include "base/host.h"
#include "lockstep/error.h"

namespace lockstep::base {

double machine_memory() {
  if (const std::optional<OwnNode> node = own_node(); node && node->memory_bytes > 0) return node->memory_bytes;
  return static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

void require_memory(size_t bytes) {
  const double machine = machine_memory();
  const auto needed = static_cast<double>(bytes);
  if (machine <= 0 || needed <= machine) return;
  const bool node = own_node().has_value();
  std::array<char, 128> text{};
  std::snprintf(text.data(), text.size(), "needs %.1f GB of memory at once; this %s has %.1f GB", needed / 1e9,
                node ? "emulated node" : "machine", machine / 1e9);
  throw MemoryError(text.data());
}

}  // namespace lockstep::base
