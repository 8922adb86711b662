// Parses an HTTP/1.1 request from untrusted bytes.
//
// A push parser without a socket: the caller feeds what arrived. One request at a time; bytes after
// it are not parsed, but reported. Accepts HTTP/1.1 and HTTP/1.0; ignores an offer to upgrade (RFC
// 9110, 7.8). Stricter than the standard where proxies and servers have interpreted the same bytes
// differently: Transfer-Encoding must be "chunked", never beside Content-Length
// (net/http/http_framing.h); no ambiguous lines (net/http/http_framing.h); no repeated
// single-value field; Host is required in HTTP/1.1; only normalised paths. A target in absolute
// form counts as the path and Host that it contains (RFC 9112, 3.2.2). Pure; use by one thread.
#pragma once

#include <http_parser.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "net/http/http_framing.h"

namespace disttf::net {

// Limits what an unauthenticated peer can make a server store. Typical heads have 200 bytes; the
// largest regular body is an options file, the samples of which have 500.
inline constexpr std::size_t kMaxRequestHeadBytes = 8 * 1024;
inline constexpr std::size_t kMaxRequestBodyBytes = 256 * 1024;

struct HttpServerRequest {
  std::string method;         // "GET"
  std::string path;           // decoded and normal, without the query: "/v1/pods/worker:1"
  std::string query;          // unchanged: "follow=true"
  std::string authorization;  // empty: none; so are the fields below
  std::string body;
  std::string host = {};  // empty: HTTP/1.0 without one
  std::string origin = {};
  std::string cookie = {};
  std::string accept = {};
  std::string accept_encoding = {};
  std::string if_none_match = {};
  std::string last_event_id = {};
  std::string content_type = {};
  std::string content_encoding = {};
  std::string expect = {};
  std::string json_bytes = {};  // Inference-Header-Content-Length: bytes before the tensors
  bool is_http10 = false;       // no chunks in the reply, and no 100 before it
  // The client may change the run. Set by the server, whose access check may clear it.
  bool may_change = false;
};

class HttpRequestParser {
 public:
  explicit HttpRequestParser(std::size_t max_body_bytes = kMaxRequestBodyBytes);
  HttpRequestParser(const HttpRequestParser&) = delete;
  HttpRequestParser& operator=(const HttpRequestParser&) = delete;

  // Takes the next bytes. Returns the status of the reply if the request is refused (400, 413, 417,
  // 431, 501, 505), else 0. The parser is not usable after a refusal.
  [[nodiscard]] int feed(std::string_view bytes);
  // How many of the bytes that were fed last belong to the request.
  [[nodiscard]] std::size_t taken() const noexcept { return taken_; }
  // Prepares for another request; keeps the memory, except that of large bodies.
  void reset();

  [[nodiscard]] bool complete() const noexcept { return complete_; }
  [[nodiscard]] bool head_complete() const noexcept { return head_complete_; }
  // Whether any byte has come.
  [[nodiscard]] bool begun() const noexcept { return lines_.begun(); }
  // Whether the client accepts another reply on this connection. REQUIRES: complete().
  [[nodiscard]] bool may_stay_open() const noexcept { return may_stay_open_ && !has_excess_; }
  // Whether the client waits for "100 Continue" before it sends the body. REQUIRES:
  // head_complete().
  [[nodiscard]] bool expects_continue() const noexcept {
    return !request_.expect.empty() && !request_.is_http10;
  }
  // As may_stay_open(), for a server that also answers the bytes that follow.
  [[nodiscard]] bool may_be_followed() const noexcept { return may_stay_open_; }
  [[nodiscard]] const HttpServerRequest& request() const noexcept { return request_; }
  [[nodiscard]] HttpServerRequest& request() noexcept { return request_; }

 private:
  // http_parser's callbacks; it passes itself, with this object in its `data`.
  static const http_parser_settings& settings() noexcept;
  static HttpRequestParser& self(http_parser* parser) noexcept;
  int on_header_piece(bool is_name, std::string_view text);
  int begin_value();
  void execute(std::string_view bytes);
  int on_head_end();
  int on_body(std::string_view text);
  bool take_target();
  bool take_authority();
  [[nodiscard]] int refusal_of_coding() const;
  [[nodiscard]] int refusal_of_head();
  int feed_chunks(std::string_view bytes);

  const std::size_t max_body_bytes_;
  http_parser parser_{};
  HttpServerRequest request_;
  std::string target_;            // unchanged
  std::string name_;              // of the current header field, lower case
  bool in_name_ = false;          // the last piece was part of a name
  std::string* value_ = nullptr;  // destination of its value; null: dropped
  unsigned seen_ = 0;             // a bit for each field that has come
  bool has_transfer_encoding_ = false;
  std::string transfer_encoding_;  // all of its values, separated by commas
  bool is_chunked_ = false;
  HttpChunks chunks_;
  HttpHeadLines lines_{kMaxRequestHeadBytes};
  bool has_excess_ = false;
  bool may_stay_open_ = false;
  bool head_complete_ = false;  // what follows is no head, but may be a trailer
  bool complete_ = false;
  int refusal_ = 0;
  std::size_t taken_ = 0;
};

// "Not Found". REQUIRES: a status that disttf's servers send.
[[nodiscard]] std::string_view http_reason(int status) noexcept;

// Whether every server interprets the path alike: no ".", ".." or empty segment, except the last
// one, no backslash, no control character. REQUIRES: decoded.
[[nodiscard]] bool is_normal_path(std::string_view path) noexcept;

// Whether a list of codings such as "gzip, deflate;q=0.5" accepts gzip.
[[nodiscard]] bool takes_gzip(std::string_view accepted) noexcept;

// "%41b" -> "Ab". Returns false and leaves `text` unchanged if a % is not followed by two
// hexadecimal digits, or if these are 00.
[[nodiscard]] bool decode_percent(std::string& text);

}  // namespace disttf::net
