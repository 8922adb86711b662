// The sum of a step's gradients, as a binary tree over their places (ranks; elastic: micro-batches)
// that is the same for every order of arrival: the sum of the places [0, 4) is (0 + 1) + (2 + 3),
// that of 7 places ((0 + 1) + (2 + 3)) + ((4 + 5) + 6). A subtree begins at a multiple of its size,
// which is a power of two, and where the places end it is cut off. A place that has nothing is left
// out: the sum of 0, 2, 3 is 0 + (2 + 3).
//
// A subtree is summed as soon as all of it is there. So, where every place has something, the last
// of n gradients finds at most log2 n additions left, rounded up, whichever it is; and the rounding
// errors of a sum grow with log2 n and not with n (N. J. Higham, The accuracy of floating point
// summation, 1993: pairwise summation).
//
// Not thread-safe. What it allocates it keeps: see buffers().
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "math/aligned.h"
#include "math/kernels.h"

namespace disttf::math {

class TreeSum {
 public:
  // The sum is sum + last; `last` is empty if `sum` is all of it.
  struct Halves {
    std::span<const float> sum;
    std::span<const float> last;
  };

  // `floats`: of a gradient.
  TreeSum(std::size_t places, std::size_t floats, Isa isa);

  // `gradient` stays there until clear(). `own`: the same memory, if sums may be written into it,
  // after which nobody else finds the gradient there; or empty. REQUIRES: nothing has been added at
  // `place` since clear().
  void add(std::size_t place, std::span<const float> gradient, std::span<float> own);
  // The same of the sum of a whole subtree, the places [first, first + count), which takes the
  // place of what was added of them. REQUIRES: not all of it was.
  void add_subtree(std::size_t first, std::size_t count, std::span<const float> sum,
                   std::span<float> own);
  // Of all that were added, and valid until clear(), before which nothing is added any more.
  // REQUIRES: something was.
  [[nodiscard]] Halves halves();
  [[nodiscard]] std::span<const float> whole();
  void clear() noexcept;

  // Of the size of a gradient each, that it has taken: where sums lie while none of the gradients
  // that they are of may be written to. At most a quarter as many as there are places, rounded up,
  // and one.
  [[nodiscard]] std::size_t buffers() const noexcept { return buffers_.size(); }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  // A subtree whose sum is known, by the first of its places that has something.
  struct Node {
    bool is_there = false;
    unsigned level = 0;             // all of it is there: 2^level places, or as many as there are
    std::span<const float> values;  // the sum
    std::span<float> own;           // the same, if it may be written to
    std::size_t buffer = kNone;     // of buffers_, where `own` is one of them
  };

  // All of the subtree of that level that `at` is in is there now, and its sum in that node.
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
  std::vector<std::size_t> unused_;  // of buffers_
};

}  // namespace disttf::math
