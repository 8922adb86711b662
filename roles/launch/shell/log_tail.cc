#include "roles/launch/shell/log_tail.h"

namespace disttf::roles {

void LogTail::append(std::string_view line) {
  // One line must not push out everything else.
  line = line.substr(0, kMaxBytes / 2);
  text_.append(line) += '\n';
  // Drops a quarter at once, at the end of a line, so that not every further line moves the text.
  if (text_.size() > kMaxBytes) {
    const std::size_t cut = text_.find('\n', text_.size() - kMaxBytes * 3 / 4);
    text_.erase(0, cut + 1);
  }
  // The HTTP server owns the stream; an expired one belongs to a connection that has closed.
  std::erase_if(readers_, [line](const std::weak_ptr<net::HttpLineStream>& each) {
    const std::shared_ptr<net::HttpLineStream> reader = each.lock();
    if (reader) {
      reader->append(line);
    }
    return !reader;
  });
}

void LogTail::follow(const std::shared_ptr<net::HttpLineStream>& reader) {
  std::erase_if(readers_, [](const auto& each) { return each.expired(); });
  readers_.push_back(reader);
}

}  // namespace disttf::roles
