// A fixed-size float buffer on a 64-byte boundary, zeroed: what kernels read with aligned loads
// and what the wire sends from and receives into.
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
  explicit AlignedVector(std::size_t size)
      : values_(size == 0 ? nullptr : static_cast<float*>(allocate(size))), size_(size) {}

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
    auto* values = static_cast<float*>(
        ::operator new[](size * sizeof(float), std::align_val_t{kAlignmentBytes}));
    std::uninitialized_fill_n(values, size, 0.0F);
    return values;
  }

  std::unique_ptr<float[], Free> values_;
  std::size_t size_ = 0;
};

}  // namespace disttf::math
