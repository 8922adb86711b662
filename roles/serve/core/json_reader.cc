#include "roles/serve/core/json_reader.h"

#include <charconv>
#include <cstdlib>
#include <limits>
#include <system_error>

#include "net/wire/text.h"
#include "roles/serve/core/api_error.h"

namespace disttf::roles {

void JsonReader::fail(const std::string& what) const {
  throw BadRequest("the body, byte " + std::to_string(at_ - begin_ + 1) + ": " + what);
}

JsonKind JsonReader::peek() {
  skip_blanks();
  // Every read of *at_ follows such a check: the text has no terminating zero.
  if (at_ == end_) {
    fail("the JSON ends where a value is expected");
  }
  switch (*at_) {
    case '{':
      return JsonKind::kObject;
    case '[':
      return JsonKind::kArray;
    case '"':
      return JsonKind::kString;
    case 't':
    case 'f':
    case 'n':
      return JsonKind::kWord;
    default:
      break;
  }
  if (*at_ == '-' || net::is_digit(*at_)) {
    return JsonKind::kNumber;
  }
  // Python's json module writes these by default, so the message names them.
  if (*at_ == 'N' || *at_ == 'I') {
    fail("NaN and Infinity are not allowed in JSON");
  }
  fail("no JSON value begins with " + net::quoted(std::string_view(at_, 1)));
}

bool JsonReader::enter(char open, char close) {
  skip_blanks();
  if (at_ == end_ || *at_ != open) {
    fail(open == '[' ? "an array is expected here" : "an object is expected here");
  }
  // Bounds the recursion of skip().
  if (++depth_ > kMaxDepth) {
    fail("nested deeper than " + std::to_string(kMaxDepth) + " levels");
  }
  ++at_;
  skip_blanks();
  if (at_ != end_ && *at_ == close) {
    ++at_;
    --depth_;
    return false;
  }
  return true;
}

void JsonReader::leave(char close) {
  if (at_ == end_ || *at_ != close) {
    fail(close == ']' ? "a comma or the array's end is expected here"
                      : "a comma or the object's end is expected here");
  }
  ++at_;
  --depth_;
}

std::string_view JsonReader::key() {
  skip_blanks();
  const std::string_view text = quoted_text(key_);
  skip_blanks();
  if (at_ == end_ || *at_ != ':') {
    fail("a colon is expected after a key");
  }
  ++at_;
  return text;
}

std::string_view JsonReader::string() {
  skip_blanks();
  return quoted_text(string_);
}

// Returns a part of the text itself if the string has no escapes; else unescapes into `storage`.
std::string_view JsonReader::quoted_text(std::string& storage) {
  if (at_ == end_ || *at_ != '"') {
    fail("a string is expected here");
  }
  ++at_;
  const char* const first = at_;
  bool is_escaped = false;
  storage.clear();
  while (at_ != end_ && *at_ != '"') {
    // Unsigned: where char is signed, the bytes of UTF-8 sequences are below ' '.
    if (static_cast<unsigned char>(*at_) < ' ') {
      fail("a control character in a string");
    }
    if (*at_ == '\\') {
      if (!is_escaped) {
        // The text before the first escape, which was not copied until now.
        storage.assign(first, at_);
        is_escaped = true;
      }
      append_escape(storage);
      continue;
    }
    if (is_escaped) {
      storage += *at_;
    }
    ++at_;
  }
  if (at_ == end_) {
    fail("the JSON ends in a string");
  }
  const std::string_view plain(first, static_cast<std::size_t>(at_ - first));
  ++at_;
  return is_escaped ? std::string_view(storage) : plain;
}

unsigned JsonReader::hex4() {
  unsigned value = 0;
  const char* const last = end_ - at_ < 4 ? at_ : at_ + 4;
  const auto [stop, error] = std::from_chars(at_, last, value, 16);
  if (last == at_ || error != std::errc() || stop != last) {
    fail("\\u must be followed by four hexadecimal digits");
  }
  at_ = last;
  return value;
}

void JsonReader::append_escape(std::string& out) {
  constexpr std::string_view kNames = "\"\\/bfnrt";
  constexpr std::string_view kMeant = "\"\\/\b\f\n\r\t";
  ++at_;
  const char name = at_ == end_ ? '\0' : *at_;
  if (const std::size_t which = kNames.find(name); which != std::string_view::npos) {
    out += kMeant[which];
    ++at_;
    return;
  }
  if (name != 'u') {
    fail("unknown escape sequence");
  }
  ++at_;
  unsigned code = hex4();
  constexpr unsigned kHigh = 0xD800;
  constexpr unsigned kLow = 0xDC00;
  // A high surrogate forms one character with a low one; followed by another escape it becomes
  // U+FFFD.
  if (code >= kHigh && code < kLow && end_ - at_ >= 6 && at_[0] == '\\' && at_[1] == 'u') {
    at_ += 2;
    const unsigned low = hex4();
    // UTF-16: each half has 10 bits of the code above 0x10000.
    code = low >= kLow && low < 0xE000 ? 0x10000 + ((code - kHigh) << 10U) + (low - kLow) : 0xFFFD;
  }
  // UTF-8 (RFC 3629): 7, 11, 16 or 21 bits in 1 to 4 bytes.
  const auto add = [&out](unsigned byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xC0U | (code >> 6U));
    add(0x80U | (code & 0x3FU));
  } else if (code < 0x10000) {
    add(0xE0U | (code >> 12U));
    add(0x80U | ((code >> 6U) & 0x3FU));
    add(0x80U | (code & 0x3FU));
  } else {
    add(0xF0U | (code >> 18U));
    add(0x80U | ((code >> 12U) & 0x3FU));
    add(0x80U | ((code >> 6U) & 0x3FU));
    add(0x80U | (code & 0x3FU));
  }
}

// A number by JSON's grammar; from_chars() accepts more.
std::string_view JsonReader::number_text() {
  if (peek() != JsonKind::kNumber) {
    fail("a number is expected here");
  }
  const char* const first = at_;
  const char* p = at_;
  const auto digits = [this, &p] {
    const char* const begin = p;
    while (p != end_ && net::is_digit(*p)) {
      ++p;
    }
    return p - begin;
  };
  p += *p == '-' ? 1 : 0;
  const bool has_zero = p != end_ && *p == '0';
  const auto whole = digits();
  bool is_number = whole > 0 && !(has_zero && whole > 1);
  if (p != end_ && *p == '.') {
    ++p;
    // digits() first: it must advance even if the number is already malformed.
    is_number = digits() > 0 && is_number;
  }
  if (p != end_ && (*p == 'e' || *p == 'E')) {
    ++p;
    p += p != end_ && (*p == '+' || *p == '-') ? 1 : 0;
    is_number = digits() > 0 && is_number;
  }
  if (!is_number) {
    fail("this is not a number of JSON");
  }
  at_ = p;
  return {first, static_cast<std::size_t>(p - first)};
}

float JsonReader::other_number() {
  const std::string_view text = number_text();
  float value = 0;
  const char* const last = text.data() + text.size();
  // from_chars() fails for a float that is out of range, also towards 0.
  // The grammar is checked, so the whole text is consumed.
  if (std::from_chars(text.data(), last, value).ec == std::errc()) {
    return value;
  }
  // The number is too large, or so small that it is a denormal or 0.
  // A copy with a terminating zero, which strtod() needs; this path is rare.
  const double wide = std::strtod(std::string(text).c_str(), nullptr);
  if (wide > std::numeric_limits<float>::max() || wide < std::numeric_limits<float>::lowest()) {
    fail(net::quoted(text) + " is too large for a float32");
  }
  return static_cast<float>(wide);
}

std::uint64_t JsonReader::whole_number() {
  const std::string_view text = number_text();
  std::uint64_t value = 0;
  const char* const last = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc() || stop != last) {
    fail(net::quoted(text) + " is not a whole number from 0 on");
  }
  return value;
}

void JsonReader::word(std::string_view text) {
  if (std::string_view(at_, static_cast<std::size_t>(end_ - at_)).substr(0, text.size()) != text) {
    fail("unknown word; JSON has true, false and null");
  }
  at_ += text.size();
}

bool JsonReader::boolean() {
  if (peek() != JsonKind::kWord || *at_ == 'n') {
    fail("true or false is expected here");
  }
  const bool value = *at_ == 't';
  word(value ? "true" : "false");
  return value;
}

void JsonReader::skip() {
  switch (peek()) {
    case JsonKind::kObject:
      if (enter_object()) {
        do {
          static_cast<void>(key());
          skip();
        } while (next_member());
      }
      return;
    case JsonKind::kArray:
      if (enter_array()) {
        do {
          skip();
        } while (next_element());
      }
      return;
    case JsonKind::kString:
      static_cast<void>(string());
      return;
    case JsonKind::kNumber:
      static_cast<void>(number_text());
      return;
    case JsonKind::kWord:
      word(*at_ == 't' ? "true" : *at_ == 'f' ? "false" : "null");
      return;
  }
}

void JsonReader::end() {
  skip_blanks();
  if (at_ != end_) {
    fail("unexpected text after the end of the JSON");
  }
}

}  // namespace disttf::roles
