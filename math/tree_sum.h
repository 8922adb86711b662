// The sum of a step's gradients as a binary tree over their places (ranks; elastic: micro-batches),
// which is independent of the order of arrival. The sum of the places [0, 4) is (0 + 1) + (2 + 3),
// that of 7 places ((0 + 1) + (2 + 3)) + ((4 + 5) + 6). A subtree begins at a multiple of its size,
// which is a power of two, and is truncated where the places end. Empty places are skipped: the sum
// of 0, 2, 3 is 0 + (2 + 3).
//
// A subtree is summed as soon as it is complete. So, if no place is empty, the last of n gradients
// leaves at most log2 n additions, rounded up, whichever it is. Rounding errors of a sum grow with
// log2 n instead of n (N. J. Higham, The accuracy of floating point summation, 1993: pairwise
// summation).
//
// Not thread-safe. It keeps the memory that it allocates: see buffers().
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "math/aligned.h"
#include "math/kernels.h"

namespace disttf::math {

class TreeSum {
 public:
  // The sum is sum + last; `last` is empty if `sum` is the whole sum.
  struct Halves {
    std::span<const float> sum;
    std::span<const float> last;
  };

  // `floats`: of a gradient.
  TreeSum(std::size_t places, std::size_t floats, Isa isa);

  // Adds a gradient, which must stay valid until clear(). `own`: the same memory if sums may be
  // written into it, which destroys the gradient; or empty. REQUIRES: nothing has been added at
  // `place` since clear().
  void add(std::size_t place, std::span<const float> gradient, std::span<float> own);
  // Adds the sum of a whole subtree, the places [first, first + count), which replaces what was
  // added for them. REQUIRES: not all of them were added.
  void add_subtree(std::size_t first, std::size_t count, std::span<const float> sum,
                   std::span<float> own);
  // The sum of all that were added, valid until clear(); nothing may be added before that.
  // REQUIRES: something was added.
  [[nodiscard]] Halves halves();
  [[nodiscard]] std::span<const float> whole();
  void clear() noexcept;

  // The number of buffers of a gradient's size that it has allocated: they hold sums whose
  // gradients may not be overwritten. At most a quarter of the number of places, rounded up, plus
  // one.
  [[nodiscard]] std::size_t buffers() const noexcept { return buffers_.size(); }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  // A subtree with a known sum, stored at the first of its places that is not empty.
  struct Node {
    bool is_there = false;
    unsigned level = 0;             // complete: 2^level places, or as many as there are
    std::span<const float> values;  // the sum
    std::span<float> own;           // the same, if it may be overwritten
    std::size_t buffer = kNone;     // index in buffers_, if `own` is one of them
  };

  // The subtree of that level that contains `at` is complete, and its sum is in that node.
  void rise(std::size_t at, unsigned level);
  void merge(std::size_t left, std::size_t right);
  [[nodiscard]] std::size_t gather(std::size_t first, unsigned level);
  void drop(Node& node) noexcept;
  [[nodiscard]] bool has_any(std::size_t first, std::size_t count) const noexcept;
  void take_buffer(Node& node);

  std::size_t floats_;
  Isa isa_;
  unsigned top_ = 0;  // level of the whole tree
  std::vector<Node> nodes_;
  std::vector<AlignedVector> buffers_;
  std::vector<std::size_t> unused_;  // indexes in buffers_
};

}  // namespace disttf::math
