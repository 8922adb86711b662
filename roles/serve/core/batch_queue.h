// Who waits for a model's answer, and who is computed together: whatever waits when the thread is
// free goes at once, up to a bound; nothing ever waits on purpose. Who is computed with whom
// changes no answer (math/predictor.h).
//
// Of one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <vector>

namespace disttf::roles {

// A question in the queue. Lies where its asker keeps it.
struct Waiting {
  const void* model = nullptr;  // only equals are computed together
  std::size_t rows = 0;
  std::size_t computed = 0;  // of them
  std::chrono::steady_clock::time_point deadline;
};

// Rows of a question, to be computed now.
struct BatchPiece {
  Waiting* of = nullptr;
  std::size_t begin = 0;
  std::size_t rows = 0;
};

class BatchQueue {
 public:
  // `max_rows`: that may wait.
  explicit BatchQueue(std::size_t max_rows) noexcept : max_rows_(max_rows) {}

  // False: too many wait. A question of any size is taken where nobody does.
  [[nodiscard]] bool admit(Waiting& question);

  // Takes the next batch: at most `most` rows of one model. Whoever is nearer its deadline was
  // asked before, so those that are late are in front; they go to `late`, and are not computed. A
  // question is in the queue until the last of its rows is taken.
  void take(std::chrono::steady_clock::time_point now, std::size_t most,
            std::vector<BatchPiece>& batch, std::vector<Waiting*>& late);

  [[nodiscard]] bool empty() const noexcept { return queue_.empty(); }
  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }

 private:
  std::size_t max_rows_;
  std::size_t rows_ = 0;
  std::deque<Waiting*> queue_;
};

}  // namespace disttf::roles
