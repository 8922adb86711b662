#include "net/http/http_head_lines.h"

#include <algorithm>

#include "net/wire/text.h"

namespace disttf::net {

std::size_t HttpHeadLines::read(std::string_view bytes) noexcept {
  for (std::size_t at = 0; at < bytes.size() && !ended_; ++at) {
    const char c = bytes[at];
    // The two come together or not at all.
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
    if (in_name_ && is_blank) return false;  // at a line's start, it would continue the one before
    in_name_ = in_name_ && c != ':';
  }
  begun_ = true;
  line_is_empty_ = false;
  return true;
}

bool is_host_field(std::string_view value) noexcept {
  static constexpr std::string_view kMarks = "-._~%!$&'()*+,;=:[]";
  return !value.empty() && std::ranges::all_of(value, [](char c) {
    return is_letter(c) || is_digit(c) || kMarks.find(c) != std::string_view::npos;
  });
}

}  // namespace disttf::net
