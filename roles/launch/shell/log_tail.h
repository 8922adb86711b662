// The newest lines of one task of a launch, and whoever reads on from there.
//
// Everything runs on the one thread that runs the io_context.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/http/http_server.h"

namespace disttf::roles {

class LogTail {
 public:
  // Of a task, whatever it prints: about a thousand lines. The oldest quarter goes when it is full.
  static constexpr std::size_t kMaxBytes = 128 * 1024;

  void append(std::string_view line);  // without its end
  // What is kept, oldest line first, each with its end.
  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  // Gets every line from now on, for as long as somebody else holds it.
  void follow(const std::shared_ptr<net::HttpLineStream>& reader);

 private:
  std::string text_;
  std::vector<std::weak_ptr<net::HttpLineStream>> readers_;
};

}  // namespace disttf::roles
