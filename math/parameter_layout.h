// All variables form one float32 vector, end to end. This file defines the position of each one,
// and which contiguous range of the vector each ps owns.
//
// Most variables are trained. Others are running statistics: trainers push a batch's value instead
// of a gradient, and an update averages these like gradients and computes
//   v = momentum v + (1 - momentum) statistic
// independent of the optimizer, its rate and its decay.
//
// Every variable starts on a 64-byte boundary (16 floats). The gap before the next one is padding
// that stays zero: gradients are zero there, and every optimizer maps (0, gradient 0) to 0.
//
// Values only; callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace disttf::math {

// One variable, for example hid_w [784, 100], row-major.
struct Variable {
  std::string name;
  std::vector<std::size_t> shape;
  std::size_t offset = 0;  // in floats from the start of the vector; a multiple of 16
  std::size_t size = 0;    // in floats, without padding: the product of shape
  bool decays = true;      // has weight decay: weights do, biases do not
  // For a running statistic; nullopt: it is trained. 0 <= momentum < 1.
  std::optional<float> momentum = std::nullopt;
  // Factor of the learning rate; 0: no update changes it. Of a running statistic: 1.
  float rate_factor = 1;

  // Without offset and size, which follow from the variables before it and from the shape.
  friend bool operator==(const Variable& a, const Variable& b) {
    return a.name == b.name && a.shape == b.shape && a.decays == b.decays &&
           a.momentum == b.momentum && a.rate_factor == b.rate_factor;
  }
};

// "[784, 100]"
[[nodiscard]] std::string shape_text(std::span<const std::size_t> shape);

// [begin, end) in floats from the start of the vector.
struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;
  [[nodiscard]] std::size_t size() const noexcept { return end - begin; }
  friend bool operator==(const Range&, const Range&) = default;
};

// A range of running statistics.
struct RunningRange {
  Range range;
  float momentum = 0;
  friend bool operator==(const RunningRange&, const RunningRange&) = default;
};

// A range with a factor of the learning rate.
struct RateRange {
  Range range;
  float factor = 1;
  friend bool operator==(const RateRange&, const RateRange&) = default;
};

// 64 bytes: a cache line, and the widest vector register that a kernel loads.
inline constexpr std::size_t kVariableAlignmentFloats = 16;

// A page: the ranges of several ps on one host can be mapped side by side and read as one vector.
inline constexpr std::size_t kShardAlignmentFloats = 4096 / sizeof(float);

class ParameterLayout {
 public:
  // Appends a variable at the next 64-byte boundary.
  void add(std::string name, std::vector<std::size_t> shape, bool decays = true,
           std::optional<float> momentum = std::nullopt);
  // The same; its offset and size are not looked at.
  void add(Variable variable);
  // Borrowed from the layout, hence deleted for temporaries.
  [[nodiscard]] std::span<const Variable> variables() const& noexcept { return variables_; }
  std::span<const Variable> variables() const&& = delete;
  // The whole vector in floats, including padding; a multiple of 16.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  // The number of values, without padding.
  [[nodiscard]] std::size_t parameter_count() const noexcept;
  // The parts of `within` whose variables decay, in order, relative to within.begin.
  [[nodiscard]] std::vector<Range> decaying(Range within) const;
  // The parts that are running statistics, likewise.
  [[nodiscard]] std::vector<RunningRange> running(Range within) const;
  // The parts whose factor of the learning rate is not 1, likewise.
  [[nodiscard]] std::vector<RateRange> rate_factors(Range within) const;
  // The whole vector without running statistics, in as few ranges as possible; each begins at a
  // variable.
  [[nodiscard]] std::vector<Range> trained() const;

 private:
  std::vector<Variable> variables_;
  std::size_t size_ = 0;
};

// The range that ps `index` of `count` owns of a vector of `size` floats: whole pages, divided as
// evenly as possible (the last page may be short). The ranges are disjoint, in order, and cover [0,
// size). With more ps than pages some are empty. REQUIRES: index < count.
[[nodiscard]] Range shard_range(std::size_t size, std::size_t index, std::size_t count);

}  // namespace disttf::math
