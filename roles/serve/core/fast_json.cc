#include "roles/serve/core/fast_json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>

#include "data/json/json_text.h"
#include "net/wire/text.h"
#include "roles/serve/core/api_route.h"
#include "text/shortest_number.h"
#include "text/shown_text.h"

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

// Returns a part of the text itself if the string has no escapes; else decodes it into `storage`.
std::string_view JsonReader::quoted_text(std::string& storage) {
  if (at_ == end_ || *at_ != '"') {
    fail("a string is expected here");
  }
  const char* const first = ++at_;
  bool is_escaped = false;
  for (; at_ != end_ && *at_ != '"'; ++at_) {
    // Unsigned: where char is signed, the bytes of UTF-8 sequences are below ' '.
    if (static_cast<unsigned char>(*at_) < ' ') {
      fail("a control character in a string");
    }
    // The character behind it is part of the escape, even if it is a quote.
    if (*at_ == '\\' && end_ - at_ > 1) {
      is_escaped = true;
      ++at_;
    }
  }
  if (at_ == end_) {
    fail("the JSON ends in a string");
  }
  const std::string_view plain(first, static_cast<std::size_t>(at_ - first));
  ++at_;
  if (!is_escaped) {
    return plain;
  }
  const nlohmann::json value = data::parse_json({plain.data() - 1, plain.size() + 2});
  if (!value.is_string()) {
    fail("the string before has an unknown escape sequence, or is not UTF-8");
  }
  storage = value.get<std::string>();
  return storage;
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

void append_number(std::string& text, float value) {
  if (!std::isfinite(value)) {
    throw ApiError(500, "the model's output is not finite");
  }
  const std::size_t before = text.size();
  append_shortest(text, value);
  if (text.find_first_of(".e", before) == std::string::npos) {
    text += ".0";  // for readers that distinguish whole numbers
  }
}

void append_numbers(std::string& text, std::span<const float> values) {
  text += '[';
  for (const float each : values) {
    append_number(text, each);
    text += ',';
  }
  // Replaces the last comma. Without values it would replace the bracket.
  text.back() = ']';
}

void append_rows(std::string& text, std::span<const float> values, std::size_t columns) {
  text += '[';
  for (std::size_t at = 0; at < values.size(); at += columns) {
    append_numbers(text, values.subspan(at, columns));
    text += ',';
  }
  text.back() = ']';
}

void append_string(std::string& text, std::string_view value) {
  constexpr std::string_view kHex = "0123456789abcdef";
  text += '"';
  while (!value.empty()) {
    const ShownCharacter character = first_character(value);
    // An invalid byte has length 0; one byte is skipped, so the loop always advances.
    const std::size_t bytes = std::max<std::size_t>(character.bytes, 1);
    if (character.bytes == 0) {
      text += '?';
    } else if (character.code < 0x20 || (character.code >= 0x7F && character.code < 0xA0)) {
      text += "\\u00";
      text += kHex[character.code >> 4U];
      text += kHex[character.code & 0xFU];
    } else {
      if (character.code == '"' || character.code == '\\') {
        text += '\\';
      }
      text += value.substr(0, bytes);
    }
    value.remove_prefix(bytes);
  }
  text += '"';
}

}  // namespace disttf::roles
