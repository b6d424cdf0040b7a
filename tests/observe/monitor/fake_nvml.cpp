// A stand-in for NVIDIA's management library with two GPUs; the second one does not report its power.
#include <cstdint>

namespace {
struct Utilization {
  unsigned gpu;
  unsigned memory;
};
struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
int numbers[2] = {0, 1};
}  // namespace

extern "C" {
int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = &numbers[index];
  return 0;
}
int nvmlDeviceGetUtilizationRates(void* device, Utilization* rates) {
  *rates = {*static_cast<int*>(device) == 0 ? 73U : 12U, 0U};
  return 0;
}
int nvmlDeviceGetMemoryInfo(void* /*device*/, Memory* memory) {
  *memory = {8'000'000'000, 3'000'000'000, 5'000'000'000};
  return 0;
}
int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  if (*static_cast<int*>(device) == 1) return 3;
  *milliwatts = 345678;
  return 0;
}
}
