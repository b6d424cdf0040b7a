#include "hardware_use.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "observe/monitor/gpu_reader.h"

namespace lockstep::tools {
namespace {

namespace fs = std::filesystem;

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

std::string cores_text(int usable, int present, int threads, std::optional<double> quota) {
  std::string text = fmt::format("{} of {} core{}, {} thread{}", usable, present, present == 1 ? "" : "s", threads,
                                 threads == 1 ? "" : "s");
  if (usable < present) text += "; this process may not use the others";
  if (quota && *quota < usable) {
    text += fmt::format("; its control group allows the time of {:.3g} cores", *quota);
  }
  return text;
}

std::string bf16_text(bool avx512_bf16, bool amx) {
  if (!avx512_bf16) return "no: AVX512_BF16 is not in use";
  return fmt::format("only with --precision bf16: AVX512_BF16{}", amx ? " and AMX" : "; no AMX");
}

std::string gpu_text(const std::vector<std::string>& gpus, const std::vector<std::string>& backends) {
  if (gpus.empty()) return "none found";
  const bool backend = std::find(backends.begin(), backends.end(), "cuda") != backends.end();
  return fmt::format("{}: {}", fmt::join(gpus, ", "),
                     backend ? "only with --backend cuda" : "not used, as Lockstep computes on the CPU");
}

std::vector<std::string> gpus() {
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc/driver/nvidia/gpus", ignored)) {
    std::istringstream lines(text_of(entry.path().string() + "/information"));
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("Model:")) continue;
      const size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
      if (begin != std::string::npos) found.push_back(line.substr(begin));
    }
  }
  const size_t counted = observe::GpuReader().count();
  if (found.size() < counted) found.resize(counted, "NVIDIA GPU");
  return found;
}

}  // namespace lockstep::tools
