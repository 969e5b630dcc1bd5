#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace verbatim {

/// Owns zeroed memory straight from the operating system: page aligned, with huge pages requested for large
/// buffers. Physical memory is taken only where a page is first touched.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  /// Reserves `bytes` bytes. Throws Error(kMachine) if the address space or a memory limit does not allow it.
  explicit AlignedBuffer(size_t bytes);
  ~AlignedBuffer();
  AlignedBuffer(AlignedBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  std::byte* data() const { return data_; }
  size_t size() const { return bytes_; }
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

/// An AlignedBuffer of `count` elements of a plain type, which are zero at first.
template <typename T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(size_t count) : memory_(count > SIZE_MAX / sizeof(T) ? SIZE_MAX : count * sizeof(T)) {}
  T* data() const { return memory_.as<T>(); }
  size_t size() const { return memory_.size() / sizeof(T); }
  std::span<T> span() const { return {data(), size()}; }
  T& operator[](size_t i) const { return data()[i]; }
  /// Makes room for at least `count` elements. The contents become zero if it has to grow, else stay.
  void reserve(size_t count) {
    if (count > size()) *this = Buffer(count);
  }

 private:
  AlignedBuffer memory_;
};

}  // namespace verbatim
