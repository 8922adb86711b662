#include "net/http/http_line_stream.h"

namespace disttf::net {

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
  if (changed_) changed_();
}

void HttpLineStream::end() {
  ended_ = true;
  if (changed_) changed_();
}

std::string HttpLineStream::take() {
  std::string text = std::exchange(pending_, {});
  if (const std::size_t lines = std::exchange(left_out_, 0); lines != 0) {
    text += "(" + std::to_string(lines) + " lines dropped: the reader was too slow)\n";
  }
  return text;
}

}  // namespace disttf::net
