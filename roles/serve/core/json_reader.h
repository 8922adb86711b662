// JSON as it comes, value by value: no tree is made of it, and a row of 784 numbers is read in a
// few microseconds. Depth is bounded, so is every call's stack.
//
// Everything throws BadRequest with a sentence that names the byte. Pure; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace disttf::roles {

enum class JsonKind : std::uint8_t { kObject, kArray, kString, kNumber, kWord };

class JsonReader {
 public:
  // Tensors have six levels at most, and what is skipped has reasons for few more.
  static constexpr std::size_t kMaxDepth = 32;

  // `text` must outlive the reader.
  explicit JsonReader(std::string_view text) noexcept
      : begin_(text.data()), at_(begin_), end_(begin_ + text.size()) {}

  // What the next value is. A word: true, false or null.
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
    // Whole numbers of a few digits, as pixels are.
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
  // Not negative.
  [[nodiscard]] std::uint64_t whole_number();
  [[nodiscard]] bool boolean();

  // Passes over a value of any kind.
  void skip();
  // REQUIRES of the text: nothing follows.
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
  void append_escape(std::string& out);
  [[nodiscard]] unsigned hex4();
  void word(std::string_view text);

  const char* begin_;
  const char* at_;
  const char* end_;
  std::size_t depth_ = 0;
  std::string key_;     // where it has escapes
  std::string string_;  // likewise
};

}  // namespace disttf::roles
