// Readings of GPUs from NVIDIA's management library, which comes with the driver and is loaded at run time: without it
// there are no GPUs. For one thread.
#pragma once

#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::observe {

/// NaN: not available.
struct GpuReading {
  double percent = std::numeric_limits<double>::quiet_NaN();      ///< busy percent since the driver's last sample
  double memory_used = std::numeric_limits<double>::quiet_NaN();  ///< bytes
  double power = std::numeric_limits<double>::quiet_NaN();        ///< watts
};

class GpuReader {
 public:
  explicit GpuReader(const std::string& library = "libnvidia-ml.so.1");
  ~GpuReader();
  GpuReader(const GpuReader&) = delete;
  GpuReader& operator=(const GpuReader&) = delete;

  [[nodiscard]] size_t count() const;
  std::vector<GpuReading> read();

 private:
  struct Library;
  std::unique_ptr<Library> library_;  ///< null: not loaded
};

}  // namespace lockstep::observe
