// Replies of disttf's HTTP servers, and their head as bytes.
//
// Values; pure functions.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/http/http_line_stream.h"
#include "net/http/http_request.h"

namespace disttf::net {

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
