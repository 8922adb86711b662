// The queue of requests to models, and the composition of batches. A free thread computes at once
// what waits, up to a bound; requests are never delayed to fill a batch. The composition of a batch
// does not affect results (math/predictor.h).
//
// Used by one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <vector>

namespace disttf::roles {

// A request in the queue. The caller owns it.
struct Waiting {
  const void* model = nullptr;  // a batch contains rows of one model
  std::size_t rows = 0;
  std::size_t computed = 0;  // how many of the rows
  std::chrono::steady_clock::time_point deadline;
};

// Rows of a request that are part of the next batch.
struct BatchPiece {
  Waiting* of = nullptr;
  std::size_t begin = 0;
  std::size_t rows = 0;
};

class BatchQueue {
 public:
  // `max_rows`: the most rows that may wait.
  explicit BatchQueue(std::size_t max_rows) noexcept : max_rows_(max_rows) {}

  // False: too many rows wait. An empty queue accepts a request of any size.
  [[nodiscard]] bool admit(Waiting& question);

  // Takes the next batch: at most `most` rows of one model. The queue is ordered by deadline, so
  // expired requests are in front; they go to `late` and are not computed. A request stays in the
  // queue until its last row is taken.
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
