// Replies of disttf's HTTP servers, and their head as bytes.
//
// Values; pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/http/http_request.h"

namespace disttf::net {

// Lines that are sent to one reader as they are written. The writer never waits. Lines for a slow
// reader are kept up to a limit; beyond it they are dropped and counted, or the stream ends.
//
// Belongs to the thread of its reader's connection.
class HttpLineStream {
 public:
  static constexpr std::size_t kMaxPendingBytes = 256 * 1024;

  enum class WhenFull : std::uint8_t {
    kLeaveOut,  // for logs: a sentence reports the number of dropped lines
    kGiveUp,    // for numbered events: the stream ends, and the reader may reconnect
  };

  explicit HttpLineStream(WhenFull when_full = WhenFull::kLeaveOut) : when_full_(when_full) {}

  void append(std::string_view line);  // without a line end
  void end();                          // no more lines; pending ones are still sent

  // The lines since the last call. Empty: there are none yet, or, after the end, no more.
  [[nodiscard]] std::string take();
  [[nodiscard]] bool has_ended() const noexcept { return ended_; }
  // For the connection: `changed` is called by append() and end(). Empty: nothing is.
  void notify(std::function<void()> changed) { changed_ = std::move(changed); }

 private:
  WhenFull when_full_;
  std::function<void()> changed_;
  std::string pending_;
  std::size_t left_out_ = 0;  // lines
  bool ended_ = false;
};

struct HttpReply {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};
  // Sent after the body, which becomes chunked then; null: none.
  std::shared_ptr<HttpLineStream> lines = nullptr;
  // More header fields, names and values. REQUIRES: no line break in them.
  std::vector<std::pair<std::string, std::string>> fields = {};

  [[nodiscard]] bool has_field(std::string_view name) const noexcept;
};

// {"error": sentence}
[[nodiscard]] HttpReply error_reply(int status, std::string_view sentence);

// The sentence for a request that is refused before it is routed; for the body of an error_reply().
// `max_body_bytes`: the limit for bodies.
[[nodiscard]] std::string refusal_sentence(int status,
                                           std::size_t max_body_bytes = kMaxRequestBodyBytes);

// Status line and header, including the empty line. `stays_open`: another request may follow.
// `takes_chunks`: false for HTTP/1.0, which gets lines unframed until the connection closes.
[[nodiscard]] std::string head_text(const HttpReply& reply, bool stays_open,
                                    bool takes_chunks = true);

}  // namespace disttf::net
