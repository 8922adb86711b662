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

}  // namespace disttf::net
