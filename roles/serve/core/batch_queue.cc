#include "roles/serve/core/batch_queue.h"

#include <algorithm>

namespace disttf::roles {

bool BatchQueue::admit(Waiting& question) {
  // An empty queue accepts a request of any size, which could otherwise never be answered.
  // The difference cannot underflow: the comparison before it has excluded that.
  if (rows_ > 0 && (rows_ >= max_rows_ || question.rows > max_rows_ - rows_)) {
    return false;
  }
  question.computed = 0;
  rows_ += question.rows;
  queue_.push_back(&question);
  return true;
}

void BatchQueue::take(std::chrono::steady_clock::time_point now, std::size_t most,
                      std::vector<BatchPiece>& batch, std::vector<Waiting*>& late) {
  batch.clear();
  late.clear();
  while (!queue_.empty() && most > 0) {
    Waiting& first = *queue_.front();
    if (now > first.deadline) {
      // The computed part has left the count already.
      rows_ -= first.rows - first.computed;
      late.push_back(&first);
      queue_.pop_front();
      continue;
    }
    // A batch has one model; the next version waits for the next batch.
    if (!batch.empty() && first.model != batch.front().of->model) {
      return;
    }
    const std::size_t count = std::min(most, first.rows - first.computed);
    batch.push_back({.of = &first, .begin = first.computed, .rows = count});
    first.computed += count;
    rows_ -= count;
    most -= count;
    // A larger request stays at the front and continues in the next batch.
    if (first.computed == first.rows) {
      queue_.pop_front();
    }
  }
}

}  // namespace disttf::roles
