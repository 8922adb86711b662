// Reads an HTTP/1.1 request out of bytes that nobody vouches for, and writes the head of a reply.
//
// A push parser without a socket: the caller feeds what came. One request at a time; what follows
// it is left alone, and noticed. HTTP/1.1 and HTTP/1.0 are read; an offer to upgrade is ignored
// (RFC 9110, 7.8). Stricter than the standard where proxies and servers have read the same bytes
// differently: Transfer-Encoding is "chunked" and nothing else, and never beside Content-Length
// (net/http/http_chunks.h), no lines that some read otherwise (net/http/http_head_lines.h), no
// field twice that has one value, Host always in HTTP/1.1, and only paths that mean the same to
// everybody. A target in absolute form counts as the path and Host that it names (RFC 9112, 3.2.2).
// Pure; one thread.
#pragma once

#include <http_parser.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "net/http/http_chunks.h"
#include "net/http/http_head_lines.h"

namespace disttf::net {

// What a stranger can make a server keep. Honest heads have 200 bytes; the largest honest body is a
// file of options, of which the sample ones have 500.
inline constexpr std::size_t kMaxRequestHeadBytes = 8 * 1024;
inline constexpr std::size_t kMaxRequestBodyBytes = 256 * 1024;

struct HttpServerRequest {
  std::string method;         // "GET"
  std::string path;           // decoded and normal, without what is behind '?': "/v1/pods/worker:1"
  std::string query;          // as it came: "follow=true"
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
  std::string json_bytes = {};  // Inference-Header-Content-Length: of a body, before its tensors
  bool is_http10 = false;       // no chunks in the reply, and no 100 before it
  // Whoever asks may change what runs: set by the server, from who it is.
  bool may_change = false;
  // Who that is: "192.0.2.1:4711", or "uid 1000, pid 4711" of this machine. Set by the server.
  std::string peer = {};
};

class HttpRequestParser {
 public:
  explicit HttpRequestParser(std::size_t max_body_bytes = kMaxRequestBodyBytes);
  HttpRequestParser(const HttpRequestParser&) = delete;
  HttpRequestParser& operator=(const HttpRequestParser&) = delete;

  // Takes the next bytes. Returns the status of the reply where the request is refused (400, 413,
  // 417, 431, 501, 505), else 0. The parser is of no use after a refusal.
  [[nodiscard]] int feed(std::string_view bytes);
  // How many of the bytes that were fed last belong to the request.
  [[nodiscard]] std::size_t taken() const noexcept { return taken_; }
  // For another request; memory is kept for it, but for that of large bodies.
  void reset();

  [[nodiscard]] bool complete() const noexcept { return complete_; }
  [[nodiscard]] bool head_complete() const noexcept { return head_complete_; }
  // Whether any byte has come, and whether any came that belongs to what follows the request.
  [[nodiscard]] bool begun() const noexcept { return lines_.begun(); }
  [[nodiscard]] bool has_excess() const noexcept { return has_excess_; }
  // Whether the other side is ready for another reply on this connection. REQUIRES: complete().
  [[nodiscard]] bool may_stay_open() const noexcept { return may_stay_open_ && !has_excess_; }
  // Whether the other side waits for "100 Continue" before it sends the body. REQUIRES:
  // head_complete().
  [[nodiscard]] bool expects_continue() const noexcept {
    return !request_.expect.empty() && !request_.is_http10;
  }
  // The same as may_stay_open() of a server that answers whatever follows, too.
  [[nodiscard]] bool may_be_followed() const noexcept { return may_stay_open_; }
  [[nodiscard]] const HttpServerRequest& request() const noexcept { return request_; }

 private:
  // What http_parser calls; it hands itself, and in its `data` this object.
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
  std::string target_;            // as it came
  std::string name_;              // of the header field being read, lower case
  bool in_name_ = false;          // the last piece belonged to a name
  std::string* value_ = nullptr;  // where its value goes; null: nowhere
  unsigned seen_ = 0;             // a bit each for the fields that have come
  bool has_transfer_encoding_ = false;
  std::string transfer_encoding_;  // all of its values, with commas between
  bool is_chunked_ = false;
  HttpChunks chunks_;
  HttpHeadLines lines_{kMaxRequestHeadBytes};
  bool has_excess_ = false;
  bool may_stay_open_ = false;
  bool head_complete_ = false;  // what comes later is no head, but perhaps a trailer
  bool complete_ = false;
  int refusal_ = 0;
  std::size_t taken_ = 0;
};

// "Not Found". REQUIRES: a status that this project's servers reply with.
[[nodiscard]] std::string_view http_reason(int status) noexcept;

// Whether every server reads the path as the same one: no ".", ".." or empty segment, but for the
// last, no backslash, no control character. REQUIRES: decoded.
[[nodiscard]] bool is_normal_path(std::string_view path) noexcept;

// Whether a list of codings, "gzip, deflate;q=0.5", names gzip, and not to forbid it.
[[nodiscard]] bool takes_gzip(std::string_view accepted) noexcept;

// "%41b" -> "Ab". Leaves `text` alone and returns false where a % is not followed by two
// hexadecimal digits, or where they are 00.
[[nodiscard]] bool decode_percent(std::string& text);

}  // namespace disttf::net
