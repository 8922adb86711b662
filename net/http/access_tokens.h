// Who may ask at an address for people and their tools: whoever says one of the tokens of a file.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "net/http/http_reply.h"
#include "net/transport/file_watch.h"
#include "net/transport/private_file.h"

namespace disttf::net {

inline constexpr std::size_t kLeastTokenBytes = 32;
inline constexpr std::size_t kMostTokenBytes = 1024;
inline constexpr std::size_t kMostTokens = 64;

// One token a line, of printable characters without blanks; the file is its owner's alone. It is
// looked at once a second where somebody asks, and read again where it has changed, so that tokens
// come and go without a restart: one that cannot be used then, or is gone, costs a warning, and the
// tokens of before go on to count. With an empty one nobody may ask.
//
// Callable from any thread.
class AccessTokens {
 public:
  // Throws std::invalid_argument, one sentence that names the flag and the file, never a token.
  AccessTokens(std::string path, std::function<void(std::string_view)> warn);

  [[nodiscard]] const std::string& file() const noexcept { return path_; }
  // For who asks somebody else: the first; empty: there is none any more.
  [[nodiscard]] std::string offered();
  // Whether a request's field Authorization has one: "Bearer TOKEN" (RFC 6750, 2.1), or "Basic"
  // with any name and the token as its password (RFC 7617), which browsers ask people for.
  [[nodiscard]] bool admit(std::string_view authorization);

 private:
  [[nodiscard]] std::vector<std::string> read(const SecretLines& allowed) const;
  void read_again();  // REQUIRES: mutex_ is held

  const std::string path_;
  std::mutex mutex_;
  FileWatch watch_;                               // guarded by mutex_
  std::vector<std::string> tokens_;               // guarded by mutex_
  std::chrono::steady_clock::time_point looked_;  // guarded by mutex_
};

// 401, and how to ask.
[[nodiscard]] HttpReply unauthorized_reply();

}  // namespace disttf::net
