#include "net/http/http_chunks.h"

#include <algorithm>

#include "net/http/http_status.h"
#include "net/wire/text.h"

namespace disttf::net {
namespace {

// A chunk of one byte has 6 bytes around it. A regular body stays below this limit.
constexpr std::size_t kMostFramingBytes = 8 * 1024;
constexpr std::size_t kMostFramingOfByte = 16;
// 2^60 bytes are above any limit, and one more digit does not overflow.
constexpr int kMostDigits = 15;

int chunk_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_chunk_text(char c) {
  return c == '\t' || (static_cast<unsigned char>(c) >= ' ' && c != '\x7f');
}

bool is_trailer_name(char c) {
  static constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return is_letter(c) || is_digit(c) || kMarks.find(c) != std::string_view::npos;
}

}  // namespace

std::size_t HttpChunks::feed(std::string_view bytes, std::string& body) {
  std::size_t at = 0;
  while (at < bytes.size() && state_ != State::kDone && refusal_ == 0) {
    if (state_ == State::kData) {
      const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size() - at));
      body.append(bytes.substr(at, size));
      left_ -= size;
      at += size;
      if (left_ == 0) state_ = State::kDataEnd;
      continue;
    }
    // Counted before the byte is used: extensions and trailers are dropped, so that no other limit
    // applies to them.
    if (!count_framing(body.size()) || !take(bytes[at], body.size())) {
      if (refusal_ == 0) refusal_ = http_status::kBadRequest;
      break;
    }
    ++at;
  }
  return at;
}

bool HttpChunks::count_framing(std::size_t body_bytes) {
  return ++framing_bytes_ <= kMostFramingBytes + kMostFramingOfByte * body_bytes;
}

bool HttpChunks::take(char c, std::size_t body_bytes) {
  switch (state_) {
    case State::kSize:
    case State::kBlank:
    case State::kExtension:
    case State::kSizeEnd:
      return take_size(c, body_bytes);
    case State::kDataEnd:
      state_ = State::kDataLine;
      return c == '\r';
    // The chunk's data was used up, so left_ is 0 when the next size begins.
    case State::kDataLine:
      state_ = State::kSize;
      digits_ = 0;
      return c == '\n';
    default:
      return take_trailer(c);
  }
}

bool HttpChunks::take_size(char c, std::size_t body_bytes) {
  if (state_ == State::kSizeEnd) {
    if (c != '\n') return false;
    state_ = left_ == 0 ? State::kTrailerStart : State::kData;
    // Before any of it is stored.
    if (left_ > max_body_bytes_ - body_bytes) refusal_ = http_status::kContentTooLarge;
    return refusal_ == 0;
  }
  if (const int digit = chunk_digit(c); state_ == State::kSize && digit >= 0) {
    left_ = 16 * left_ + static_cast<std::uint64_t>(digit);
    return ++digits_ <= kMostDigits;
  }
  if (digits_ == 0) return false;
  if (c == '\r') {
    const bool is_whole = state_ != State::kBlank;  // blanks are allowed only before ';'
    state_ = State::kSizeEnd;
    return is_whole;
  }
  if (state_ == State::kExtension) return is_chunk_text(c);
  state_ = c == ';' ? State::kExtension : State::kBlank;
  return c == ';' || c == ' ' || c == '\t';
}

bool HttpChunks::take_trailer(char c) {
  switch (state_) {
    case State::kTrailerStart:
      state_ = c == '\r' ? State::kLastLine : State::kTrailerName;
      return c == '\r' || is_trailer_name(c);
    case State::kTrailerName:
      if (c == ':') state_ = State::kTrailerValue;
      return c == ':' || is_trailer_name(c);
    case State::kTrailerValue:
      if (c == '\r') state_ = State::kTrailerLine;
      return c == '\r' || is_chunk_text(c);
    case State::kTrailerLine:
      state_ = State::kTrailerStart;
      return c == '\n';
    default:
      state_ = State::kDone;
      return c == '\n';
  }
}

}  // namespace disttf::net
