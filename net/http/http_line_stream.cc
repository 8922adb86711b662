#include "net/http/http_line_stream.h"

#include <utility>

#include "net/transport/as_tuple.h"

namespace disttf::net {

HttpLineStream::HttpLineStream(asio::io_context& context, WhenFull when_full)
    : wake_(context, asio::steady_timer::time_point::max()), when_full_(when_full) {}

void HttpLineStream::append(std::string_view line) {
  if (ended_) return;
  if (pending_.size() + line.size() + 1 <= kMaxPendingBytes) {
    pending_.append(line) += '\n';
  } else if (when_full_ == WhenFull::kLeaveOut) {
    ++left_out_;
  } else {
    pending_ = {};  // a partial backlog would hide a gap in the numbers
    ended_ = true;
  }
  wake_.cancel();
}

void HttpLineStream::end() {
  ended_ = true;
  wake_.cancel();
}

asio::awaitable<bool> HttpLineStream::take(std::string& text) {
  // The timer never expires; append() and end() cancel it to wake this wait.
  while (pending_.empty() && left_out_ == 0 && !ended_) {
    co_await wake_.async_wait(kAsTuple);
  }
  // What is pending at the end is still delivered; only the call after that returns false.
  text = std::exchange(pending_, {});
  if (const std::size_t lines = std::exchange(left_out_, 0); lines != 0) {
    text += "(" + std::to_string(lines) + " lines dropped: the reader was too slow)\n";
  }
  co_return !text.empty();
}

}  // namespace disttf::net
