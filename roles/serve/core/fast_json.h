// JSON of requests and answers, where data/json/json_text.h is too slow.
//
// A streaming JSON parser for requests: it builds no tree, and reads numbers as float32. Depth is
// bounded, and with it the stack.
//
// All other JSON is read by data/json/json_text.h, whose parser takes 47 us for a row of 784
// pixels, and 38 us as a stream. This one takes 4 us of the 40 us that a request costs. simdjson
// takes 6 us, but Debian 12 has no archive of it for a static executable.
//
// All functions throw BadRequest with a sentence that names the byte. Pure; for one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace disttf::roles {

enum class JsonKind : std::uint8_t { kObject, kArray, kString, kNumber, kWord };

class JsonReader {
 public:
  // Tensors have at most six levels; skipped values rarely have more.
  static constexpr std::size_t kMaxDepth = 32;

  // `text` must outlive the reader.
  explicit JsonReader(std::string_view text) noexcept
      : begin_(text.data()), at_(begin_), end_(begin_ + text.size()) {}

  // The kind of the next value. kWord: true, false or null.
  [[nodiscard]] JsonKind peek();

  // Arrays: if (enter_array()) do { a value } while (next_element()).
  [[nodiscard]] bool enter_array() { return enter('[', ']'); }
  [[nodiscard]] bool next_element() { return next(']'); }
  // Objects: if (enter_object()) do { key(), a value } while (next_member()).
  [[nodiscard]] bool enter_object() { return enter('{', '}'); }
  [[nodiscard]] bool next_member() { return next('}'); }

  // Valid until the next call of the same function.
  [[nodiscard]] std::string_view key();
  [[nodiscard]] std::string_view string();

  // A finite float32, the nearest one.
  [[nodiscard]] float number() {
    skip_blanks();
    // Fast path: whole numbers of a few digits, such as pixels.
    constexpr std::ptrdiff_t kMostDigits = 7;
    const char* p = at_;
    unsigned value = 0;
    while (p != end_ && *p >= '0' && *p <= '9' && p - at_ < kMostDigits) {
      value = value * 10 + static_cast<unsigned>(*p - '0');
      ++p;
    }
    const bool is_plain =
        p != at_ && p != end_ && (*p == ',' || *p == ']') && (*at_ != '0' || p - at_ == 1);
    if (!is_plain) {
      return other_number();
    }
    at_ = p;
    return static_cast<float>(value);
  }
  // Rejects negative numbers.
  [[nodiscard]] std::uint64_t whole_number();
  [[nodiscard]] bool boolean();

  // Skips a value of any kind.
  void skip();
  // Throws unless the text ends here.
  void end();

  [[noreturn]] void fail(const std::string& what) const;

 private:
  void skip_blanks() noexcept {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) {
      ++at_;
    }
  }
  [[nodiscard]] bool enter(char open, char close);
  [[nodiscard]] bool next(char close) {
    skip_blanks();
    if (at_ != end_ && *at_ == ',') {
      ++at_;
      return true;
    }
    leave(close);
    return false;
  }
  void leave(char close);
  [[nodiscard]] std::string_view number_text();
  [[nodiscard]] float other_number();
  [[nodiscard]] std::string_view quoted_text(std::string& storage);
  void word(std::string_view text);

  const char* begin_;
  const char* at_;
  const char* end_;
  std::size_t depth_ = 0;
  std::string key_;     // storage for a key with escapes
  std::string string_;  // likewise
};

// Appends numbers and texts to the JSON of an answer. data/json/json_text.h, which writes all other
// JSON, would print a float32 with the digits of a double, 0.10000000149011612 for 0.1. It takes
// 1270 ns for an answer of ten numbers, these functions 240 ns; for a name 126 ns, these 22 ns.
//
// Pure functions.

// Appends the shortest number that reads back as the same float32: "0.1", "3.0". Throws ApiError if
// the value is not finite.
void append_number(std::string& text, float value);
// "[1.0,2.0]"
void append_numbers(std::string& text, std::span<const float> values);
// "[[...],[...]]", `columns` in each. REQUIRES: columns > 0.
void append_rows(std::string& text, std::span<const float> values, std::size_t columns);
// Appends a quoted string. It reads back unchanged, control characters included; a byte that is not
// UTF-8 becomes "?".
void append_string(std::string& text, std::string_view value);

}  // namespace disttf::roles
