// Buffer: a block of memory that knows its device. Owned, 128-byte aligned, zeroed when made.
// Tensor: a borrowed view of typed memory. Neither is synchronised: the code that shares one decides which thread may
// write.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "lockstep/shape.h"

namespace lockstep {

enum class Device : uint8_t { cpu, cuda };

class Buffer {
 public:
  Buffer() = default;
  /// Throws IoError with the wanted size if the system refuses the memory.
  explicit Buffer(size_t bytes);

  [[nodiscard]] std::byte* data() const { return data_.get(); }
  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] Device device() const { return Device::cpu; }

  /// Returns the whole buffer as elements of T.
  template <class T>
  [[nodiscard]] std::span<T> as() const {
    return {reinterpret_cast<T*>(data()), size_ / sizeof(T)};
  }

 private:
  struct Free {
    void operator()(std::byte* data) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  size_t size_ = 0;
};

struct Tensor {
  TensorType type;
  std::byte* data = nullptr;

  template <class T>
  [[nodiscard]] std::span<T> as() const {
    return {reinterpret_cast<T*>(data), static_cast<size_t>(type.shape.elements())};
  }
};

}  // namespace lockstep
