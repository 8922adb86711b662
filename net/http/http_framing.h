// How HTTP's messages are delimited: chunked bodies, and the lines of a head.
//
// Decodes a chunked body (RFC 9112, 7.1) from untrusted bytes.
//
// Strict where servers and proxies have interpreted the same bytes differently: sizes consist of
// hexadecimal digits only, lines end in CR LF, and a chunk has exactly the announced bytes.
// Extensions and trailer fields are read and dropped. Their total size is limited, too. Pure; use
// by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace disttf::net {

class HttpChunks {
 public:
  explicit HttpChunks(std::size_t max_body_bytes) : max_body_bytes_(max_body_bytes) {}

  // Takes the next bytes and appends the content to `body`. Returns how many bytes it took: all of
  // them, unless the body has ended or is refused. Not usable after a refusal.
  [[nodiscard]] std::size_t feed(std::string_view bytes, std::string& body);

  [[nodiscard]] bool complete() const noexcept { return state_ == State::kDone; }
  // The status for a refused body: 400, or 413 where it is above the limit; else 0.
  [[nodiscard]] int refusal() const noexcept { return refusal_; }

 private:
  enum class State : std::uint8_t {
    kSize,       // hexadecimal digits
    kBlank,      // behind them, before ';'
    kExtension,  // up to the line's end
    kSizeEnd,    // LF
    kData,
    kDataEnd,   // CR
    kDataLine,  // LF
    kTrailerStart,
    kTrailerName,
    kTrailerValue,
    kTrailerLine,  // LF behind a field
    kLastLine,     // LF behind an empty line
    kDone,
  };

  // Returns false if this byte is invalid here.
  bool take(char c, std::size_t body_bytes);
  bool take_size(char c, std::size_t body_bytes);
  bool take_trailer(char c);
  bool count_framing(std::size_t body_bytes);

  std::size_t max_body_bytes_;
  State state_ = State::kSize;
  int digits_ = 0;
  std::uint64_t left_ = 0;  // of the chunk
  std::size_t framing_bytes_ = 0;
  int refusal_ = 0;
};

// Checks that every server and proxy parses the lines of a request's head alike.
//
// http_parser is lenient: it accepts a bare line feed as a line end, a lone carriage return as the
// end of the head, a blank before a colon, and continued lines. A proxy in front of this server may
// read such bytes as another request (request smuggling), so they are refused, as RFC 9112 (2.2, 3,
// 5.1, 5.2) allows or demands. Pure; use by one thread.
class HttpHeadLines {
 public:
  // `most_bytes`: limit for a head including empty lines before it.
  explicit HttpHeadLines(std::size_t most_bytes) noexcept : bytes_left_(most_bytes) {}

  // Takes the next bytes of a head, or of empty lines before it; ignores what follows the head.
  // Returns the position of the first byte that is invalid or exceeds the limit, or bytes.size().
  // Not usable after such a byte.
  [[nodiscard]] std::size_t read(std::string_view bytes) noexcept;

  // Whether any byte of the head has come.
  [[nodiscard]] bool begun() const noexcept { return begun_; }
  // Whether the head is complete.
  [[nodiscard]] bool ended() const noexcept { return ended_; }
  // Whether it exceeds `most_bytes`.
  [[nodiscard]] bool too_long() const noexcept { return too_long_; }

 private:
  [[nodiscard]] bool end_line() noexcept;
  [[nodiscard]] bool takes(char c) noexcept;

  std::size_t bytes_left_;
  char previous_ = '\0';
  bool begun_ = false;
  bool ended_ = false;
  bool too_long_ = false;
  bool is_request_line_ = true;
  bool line_is_empty_ = true;  // so far
  bool in_name_ = false;       // of a field: before its colon
  int spaces_ = 0;             // in the request line
};

// Whether a Host field contains a single valid host: a name or an address, IPv6 in brackets, and
// optionally a port (RFC 9110, 7.2; RFC 3986, 3.2.2). Commas are not accepted in names, because
// they separate two hosts.
[[nodiscard]] bool is_host_field(std::string_view value) noexcept;

}  // namespace disttf::net
