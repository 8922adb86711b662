// Files that are read again where they have changed, while a process lives: secrets, certificates,
// tokens.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "net/transport/file_seen.h"

namespace disttf::net {

// When to read them, and what to say where that fails. What has been read last stays until it
// succeeds; it is tried again where they change once more, and each second where they do not, as
// what was wrong may have been their mode, the clock, or the machine. One thread at a time.
class FileWatch {
 public:
  using Warn = std::function<void(std::string_view)>;

  // They are read by the caller, now. `stays`: the end of a warning, "the secrets of before stay".
  // `warn` may be empty.
  FileWatch(std::vector<std::string> paths, std::string stays, Warn warn);

  // Calls read() where that is due. std::invalid_argument from it costs a warning, once for each
  // state of the files; what else it throws goes on to the caller. A file that has been gone for
  // 10 s, and so is not just being replaced, costs a warning, too.
  template <class Read>
  void read_where_due(const Read& read) {
    if (!is_due()) return;
    try {
      read();
      succeeded();
    } catch (const std::invalid_argument& error) {
      failed(error.what());
    }
  }

 private:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] bool is_due();
  void succeeded();
  void failed(std::string_view why);
  void look_for_gone(const std::vector<FileSeen>& now);

  const std::vector<std::string> paths_;
  const std::string stays_;
  const Warn warn_;
  std::vector<FileSeen> read_;    // as of the last reading that has succeeded
  std::vector<FileSeen> tried_;   // of the last one
  std::vector<FileSeen> warned_;  // of which a warning has told
  Clock::time_point tried_at_;
  std::optional<Clock::time_point> gone_since_;
  bool has_told_of_gone_ = false;
};

}  // namespace disttf::net
