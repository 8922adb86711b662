#include "net/http/http_head_lines.h"

#include <algorithm>

#include "net/wire/text.h"

namespace disttf::net {

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
