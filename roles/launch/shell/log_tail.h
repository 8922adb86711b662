// The newest lines of one task of a launch, and its readers that follow.
//
// Everything runs on the one thread that runs the io_context.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/http/http_line_stream.h"

namespace disttf::roles {

class LogTail {
 public:
  // Per task, whatever it prints: about a thousand lines. A full buffer drops the oldest quarter.
  static constexpr std::size_t kMaxBytes = 128 * 1024;

  void append(std::string_view line);  // without its end
  // The kept lines, oldest first, each with its end.
  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  // Sends every line from now on to `reader`, as long as another owner holds it.
  void follow(const std::shared_ptr<net::HttpLineStream>& reader);

 private:
  std::string text_;
  std::vector<std::weak_ptr<net::HttpLineStream>> readers_;
};

}  // namespace disttf::roles
