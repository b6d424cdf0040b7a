#include "lab/environment.h"

#include <fmt/format.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "base/host.h"
#include "base/parallel.h"

namespace lockstep::lab {
namespace {

std::string first_value(const char* file, const std::string& key, char separator) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with(key)) continue;
    std::string value = line.substr(std::min(line.find(separator) + 1, line.size()));
    std::erase(value, '"');
    return value.substr(std::min(value.find_first_not_of(' '), value.size()));
  }
  return "";
}

std::string system_text() {
  utsname system{};
  const std::string kernel = uname(&system) == 0 ? fmt::format("{} {}", system.sysname, system.release) : "";
  const std::string name = first_value("/etc/os-release", "PRETTY_NAME=", '=');
  return name.empty() ? kernel : name + ", " + kernel;
}

}  // namespace

Environment environment(std::string program, std::string compiler) {
  Environment e;
  e.program = std::move(program);
  e.host = base::host_name();
  e.system = system_text();
  e.processor = first_value("/proc/cpuinfo", "model name", ':');
  e.cores = base::available_cores();
  struct sysinfo memory {};
  if (sysinfo(&memory) == 0) e.memory_bytes = static_cast<double>(memory.totalram) * memory.mem_unit;
  e.compiler = std::move(compiler);
  return e;
}

}  // namespace lockstep::lab
