// lockstep info: the machine, its permissions, and the program's libraries.
#include <dnnl.h>
#include <sys/sysinfo.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "backend/cpu/isa.h"
#include "base/cpu_quota.h"
#include "base/parallel.h"
#include "command.h"
#include "command_line.h"
#include "emulate/rights.h"
#include "hardware_use.h"
#include "settings/machine.h"
#include "terminal/output.h"
#include "terminal/terminal.h"
#include "terminal/text.h"
#include "version.h"

namespace lockstep::tools {
namespace {

using Json = nlohmann::ordered_json;

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

uint64_t memory_bytes() {
  struct sysinfo system {};
  return sysinfo(&system) == 0 ? uint64_t{system.totalram} * system.mem_unit : 0;
}

std::string onednn_version() {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("{}.{}.{}", version->major, version->minor, version->patch);
}

std::string allowed(const std::string& why_not) { return why_not.empty() ? "yes" : "no: " + why_not; }

Json collect() {
  backend::cpu::limit_isa_from_environment();
  const std::optional<double> quota = base::own_allowed_cores();
  return {
      {"version", kVersion},
      {"build", kBuildType},
      {"compiler", kCompiler},
      {"cpu", cpu_name()},
      {"cores", base::available_cores()},
      {"isa", backend::cpu::name(backend::cpu::active_isa())},
      {"memory_bytes", memory_bytes()},
      {"threads", settings::resolve_threads({})},
      {"backends", settings::backend_names()},
      {"onednn", onednn_version()},
      {"highway", kHighway},
      {"computes_on", cores_text(base::available_cores(), get_nprocs(), settings::resolve_threads({}), quota)},
      {"bf16", bf16_text(backend::cpu::has_avx512_bf16(), backend::cpu::has_amx_bf16())},
      {"gpu", gpu_text(gpus(), settings::backend_names())},
      {"cpu_quota", allowed(emulate::why_no_control_groups())},
      {"emulate", allowed(emulate::why_no_emulation())},
  };
}

std::string value_text(const std::string& key, const Json& value) {
  if (key == "memory_bytes") return terminal::bytes_text(value.get<uint64_t>());
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::string text;
  for (const Json& item : value) text += (text.empty() ? "" : ", ") + item.get<std::string>();
  return text;
}

int run_info(bool json) {
  const Json info = collect();
  if (json) {
    terminal::print("{}\n", info.dump(2));
    return 0;
  }
  const terminal::Terminal terminal = terminal::Terminal::detect();
  for (const auto& [key, value] : info.items()) {
    const std::string label = key == "memory_bytes" ? "memory" : key;
    terminal::print("{}{}\n", terminal.dim(terminal::padded_right(label, 12)), value_text(key, value));
  }
  return 0;
}

}  // namespace

void add_info(const Command& program, Invocation& invocation) {
  const Command app = program.add_command("info", "Show the machine, its permissions, the backends and the versions");
  const auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "Print JSON");
  app.footer("Examples:\n  lockstep info\n  LOCKSTEP_MAX_ISA=avx2 lockstep info    with fewer instruction sets");
  app.callback([json, &invocation] { invocation.run = [json] { return run_info(*json); }; });
}

}  // namespace lockstep::tools
