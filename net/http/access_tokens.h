// Access control by bearer tokens: a request must carry one of the tokens of a file.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/http/http_reply.h"
#include "net/tls/file_watch.h"
#include "net/tls/private_file.h"

namespace disttf::net {

inline constexpr std::size_t kLeastTokenBytes = 32;
inline constexpr std::size_t kMostTokenBytes = 1024;
inline constexpr std::size_t kMostTokens = 64;

// The file has one token a line, of printable characters without blanks, and must be private to its
// owner. It is checked at most once a second, on a request, and read again when it has changed, so
// tokens can be added and removed without a restart. A file that is unusable or missing then causes
// a warning, and the previous tokens stay in use. An empty file denies all requests.
//
// Callable from any thread.
class AccessTokens {
 public:
  // Throws std::invalid_argument: one sentence that names the flag and the file, never a token.
  AccessTokens(std::string path, std::function<void(std::string_view)> warn);

  [[nodiscard]] const std::string& file() const noexcept { return path_; }
  // For outgoing requests: the first token; empty: there is none.
  [[nodiscard]] std::string offered();
  // Whether the Authorization field contains a token: "Bearer TOKEN" (RFC 6750, 2.1), or "Basic"
  // with any name and the token as the password (RFC 7617), which browsers ask for.
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

// Returns a reply with status 401 and the accepted schemes, or nullopt if the request has one of
// the tokens, or needs none (`tokens` is null).
[[nodiscard]] std::optional<HttpReply> refuse_without_token(AccessTokens* tokens,
                                                            const HttpServerRequest& request);

// Compares secrets.

// Takes equally long for all texts of the same length.
[[nodiscard]] inline bool is_same_secret(std::string_view given, std::string_view secret) noexcept {
  if (given.size() != secret.size()) return false;
  unsigned difference = 0;
  for (std::size_t each = 0; each < secret.size(); ++each) {
    difference |= static_cast<unsigned>(given[each] ^ secret[each]);
  }
  return difference == 0;
}

}  // namespace disttf::net
