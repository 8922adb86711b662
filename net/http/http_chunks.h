// Reads a body that comes in chunks (RFC 9112, 7.1), out of bytes that nobody vouches for.
//
// Strict where servers and proxies have read the same bytes differently: sizes are hexadecimal
// digits alone, lines end in CR LF, a chunk has exactly the bytes that it announces. Extensions and
// trailer fields are read and dropped. What is not body (sizes, extensions, trailers) is bounded,
// too. Pure; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace disttf::net {

class HttpChunks {
 public:
  explicit HttpChunks(std::size_t max_body_bytes) : max_body_bytes_(max_body_bytes) {}

  // Takes the next bytes, and appends to `body` what belongs to it. Returns how many it took: all
  // of them, unless the body has ended or is refused. Of no use after a refusal.
  [[nodiscard]] std::size_t feed(std::string_view bytes, std::string& body);

  [[nodiscard]] bool complete() const noexcept { return state_ == State::kDone; }
  // The status of the reply where the body is refused: 400, or 413 where it is above the bound;
  // else 0.
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

  // False: this byte does not belong there.
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
