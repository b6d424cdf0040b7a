#include "observe/monitor/gpu_reader.h"

#include <dlfcn.h>

namespace lockstep::observe {
namespace {

constexpr double kMilli = 1e-3;
constexpr unsigned kMostGpus = 64;

using Device = void*;
struct Utilization {
  unsigned gpu;
  unsigned memory;
};
struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

}  // namespace

/// The library's functions in use; each returns 0 on success.
struct GpuReader::Library {
  void* handle = nullptr;
  bool begun = false;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*device_count)(unsigned*) = nullptr;
  int (*device)(unsigned, Device*) = nullptr;
  int (*utilization)(Device, Utilization*) = nullptr;
  int (*memory)(Device, Memory*) = nullptr;
  int (*power)(Device, unsigned*) = nullptr;
  std::vector<Device> devices;

  explicit Library(const std::string& name) : handle(dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle == nullptr) return;
    find("nvmlInit_v2", init);
    find("nvmlShutdown", shutdown);
    find("nvmlDeviceGetCount_v2", device_count);
    find("nvmlDeviceGetHandleByIndex_v2", device);
    find("nvmlDeviceGetUtilizationRates", utilization);
    find("nvmlDeviceGetMemoryInfo", memory);
    find("nvmlDeviceGetPowerUsage", power);
    if (init == nullptr || shutdown == nullptr || device_count == nullptr || device == nullptr) return;
    begun = init() == 0;
    unsigned count = 0;
    if (!begun || device_count(&count) != 0) return;
    for (unsigned i = 0; i < count && i < kMostGpus; ++i) {
      Device found = nullptr;
      devices.push_back(device(i, &found) == 0 ? found : nullptr);  // keeps the GPU's number
    }
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    if (begun) shutdown();
    if (handle != nullptr) dlclose(handle);
  }

  template <class Function>
  void find(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(dlsym(handle, name));
  }
};

GpuReader::GpuReader(const std::string& library) : library_(std::make_unique<Library>(library)) {
  if (library_->devices.empty()) library_.reset();
}

GpuReader::~GpuReader() = default;

size_t GpuReader::count() const { return library_ ? library_->devices.size() : 0; }

std::vector<GpuReading> GpuReader::read() {
  std::vector<GpuReading> readings(count());
  for (size_t i = 0; i < readings.size(); ++i) {
    const Library& use = *library_;
    if (use.devices[i] == nullptr) continue;
    Utilization busy{};
    if (use.utilization != nullptr && use.utilization(use.devices[i], &busy) == 0) readings[i].percent = busy.gpu;
    Memory memory{};
    if (use.memory != nullptr && use.memory(use.devices[i], &memory) == 0) {
      readings[i].memory_used = static_cast<double>(memory.used);
    }
    unsigned milliwatts = 0;
    if (use.power != nullptr && use.power(use.devices[i], &milliwatts) == 0) readings[i].power = kMilli * milliwatts;
  }
  return readings;
}

}  // namespace lockstep::observe
