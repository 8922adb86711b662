// A fixed-size float buffer, aligned to 64 bytes and zeroed by default. Kernels read it with
// aligned loads; the wire sends from it and receives into it.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <span>

namespace disttf::math {

class AlignedVector {
 public:
  static constexpr std::size_t kAlignmentBytes = 64;

  AlignedVector() = default;
  explicit AlignedVector(std::size_t size) : AlignedVector(for_overwrite(size)) {
    std::uninitialized_fill_n(values_.get(), size, 0.0F);
  }
  // Not zeroed: for callers that write all of it before any of it is read.
  [[nodiscard]] static AlignedVector for_overwrite(std::size_t size) {
    AlignedVector vector;
    vector.values_.reset(size == 0 ? nullptr : static_cast<float*>(allocate(size)));
    vector.size_ = size;
    return vector;
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] float* data() noexcept { return values_.get(); }
  [[nodiscard]] const float* data() const noexcept { return values_.get(); }
  [[nodiscard]] std::span<float> span() noexcept { return {values_.get(), size_}; }
  [[nodiscard]] std::span<const float> span() const noexcept { return {values_.get(), size_}; }

 private:
  struct Free {
    void operator()(float* values) const noexcept {
      ::operator delete[](values, std::align_val_t{kAlignmentBytes});
    }
  };
  // Throws std::bad_alloc.
  static void* allocate(std::size_t size) {
    return ::operator new[](size * sizeof(float), std::align_val_t{kAlignmentBytes});
  }

  std::unique_ptr<float[], Free> values_;
  std::size_t size_ = 0;
};

}  // namespace disttf::math
