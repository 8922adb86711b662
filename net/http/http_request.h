// Reads an HTTP/1.1 request out of bytes that nobody vouches for, and writes the head of a reply.
//
// A push parser without a socket: the caller feeds what came. One request per object; what follows
// it is left alone, since a server closes after its reply. Pure; one thread.
#pragma once

#include <http_parser.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace disttf::net {

// What a stranger can make a server keep. Honest heads have 200 bytes; the largest honest body is a
// file of options, of which the sample ones have 500.
inline constexpr std::size_t kMaxRequestHeadBytes = 8 * 1024;
inline constexpr std::size_t kMaxRequestBodyBytes = 256 * 1024;

struct HttpServerRequest {
  std::string method;         // "GET"
  std::string path;           // decoded, without what is behind '?': "/v1/pods/worker:1"
  std::string query;          // as it came: "follow=true"
  std::string authorization;  // empty: none
  std::string body;
};

class HttpRequestParser {
 public:
  HttpRequestParser();
  HttpRequestParser(const HttpRequestParser&) = delete;
  HttpRequestParser& operator=(const HttpRequestParser&) = delete;

  // Takes the next bytes. Returns the status of the reply where the request is refused (400, 413,
  // 431, 501, 505), else 0. The parser is of no use after a refusal.
  [[nodiscard]] int feed(std::string_view bytes);

  [[nodiscard]] bool complete() const noexcept { return complete_; }
  [[nodiscard]] const HttpServerRequest& request() const noexcept { return request_; }

 private:
  // What http_parser calls; it hands itself, and in its `data` this object.
  static const http_parser_settings& settings() noexcept;
  static HttpRequestParser& self(http_parser* parser) noexcept;
  int count_head_bytes(std::size_t bytes);
  int on_header_piece(bool is_name, std::string_view text);
  int on_head_end();
  int on_body(std::string_view text);
  bool take_target();

  http_parser parser_{};
  HttpServerRequest request_;
  std::string target_;          // as it came
  std::string name_;            // of the header field being read, lower case
  bool in_name_ = false;        // the last piece belonged to a name
  bool head_complete_ = false;  // what comes later is no head, but perhaps a trailer
  bool complete_ = false;
  int refusal_ = 0;
  std::size_t head_bytes_ = 0;
};

// "Not Found". REQUIRES: a status that this project's servers reply with.
[[nodiscard]] std::string_view http_reason(int status) noexcept;

// "%41b" -> "Ab". Leaves `text` alone and returns false where a % is not followed by two
// hexadecimal digits, or where they are 00.
[[nodiscard]] bool decode_percent(std::string& text);

}  // namespace disttf::net
