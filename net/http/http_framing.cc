#include "net/http/http_framing.h"

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
  if (const int digit = hex_digit(c); state_ == State::kSize && digit >= 0) {
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

std::size_t HttpHeadLines::read(std::string_view bytes) noexcept {
  for (std::size_t at = 0; at < bytes.size() && !ended_; ++at) {
    const char c = bytes[at];
    // Only bytes of the head count, so the result does not depend on how the input was split.
    too_long_ = bytes_left_ == 0;
    if (too_long_) return at;
    --bytes_left_;
    // CR and LF are valid only together.
    if ((previous_ == '\r') != (c == '\n')) return at;
    if (c == '\n' ? !end_line() : c != '\r' && !takes(c)) return at;
    previous_ = c;
  }
  return bytes.size();
}

bool HttpHeadLines::end_line() noexcept {
  if (!begun_)
    return true;  // an empty line before the request, as some clients leave behind a body
  if (line_is_empty_) {
    ended_ = true;
    return true;
  }
  // Method, target and version are separated by exactly two blanks.
  if (is_request_line_ && spaces_ != 2) return false;
  is_request_line_ = false;
  line_is_empty_ = true;
  return true;
}

bool HttpHeadLines::takes(char c) noexcept {
  const bool is_blank = c == ' ' || c == '\t';
  if ((static_cast<unsigned char>(c) < ' ' && c != '\t') || c == '\x7f') return false;
  if (is_request_line_) {
    if (c == '\t' || (c == ' ' && (line_is_empty_ || ++spaces_ > 2))) return false;
  } else {
    if (line_is_empty_) in_name_ = true;
    if (in_name_ && is_blank) return false;  // at a line's start it continues the previous one
    in_name_ = in_name_ && c != ':';
  }
  begun_ = true;
  line_is_empty_ = false;
  return true;
}

bool is_host_field(std::string_view value) noexcept {
  static constexpr std::string_view kMarks = "-._~%!$&'()*+;=";
  const auto is_name = [](char c) {
    return is_letter(c) || is_digit(c) || kMarks.find(c) != std::string_view::npos;
  };
  const auto is_address = [](char c) {
    return is_letter(c) || is_digit(c) || c == ':' || c == '.' || c == '%';
  };
  const bool is_bracketed = value.starts_with('[');
  if (is_bracketed) value.remove_prefix(1);
  const std::size_t end = std::min(value.find(is_bracketed ? ']' : ':'), value.size());
  const std::string_view name = value.substr(0, end);
  std::string_view port = value.substr(end);
  if (is_bracketed) {
    if (port.empty()) return false;
    port.remove_prefix(1);
  }
  if (name.empty() || !(is_bracketed ? std::ranges::all_of(name, is_address)
                                     : std::ranges::all_of(name, is_name))) {
    return false;
  }
  return port.empty() || (port.front() == ':' && std::ranges::all_of(port.substr(1), is_digit));
}

}  // namespace disttf::net
