#include "roles/serve/core/base64.h"

#include "net/wire/text.h"

namespace disttf::roles {
namespace {

constexpr unsigned kNoDigit = 64;

unsigned base64_digit(char c) {
  if (c >= 'A' && c <= 'Z') return static_cast<unsigned>(c - 'A');
  if (c >= 'a' && c <= 'z') return static_cast<unsigned>(c - 'a') + 26;
  if (net::is_digit(c)) return static_cast<unsigned>(c - '0') + 52;
  if (c == '+' || c == '-') return 62;
  return c == '/' || c == '_' ? 63 : kNoDigit;
}

}  // namespace

bool decode_base64(std::string_view text, std::vector<std::uint8_t>& bytes) {
  bytes.clear();
  if (text.size() % 4 == 0) {
    for (int i = 0; i < 2 && text.ends_with('='); ++i) {
      text.remove_suffix(1);
    }
  }
  if (text.size() % 4 == 1) return false;
  bytes.reserve(text.size() / 4 * 3 + 3);
  unsigned bits = 0;
  unsigned count = 0;
  for (const char c : text) {
    const unsigned digit = base64_digit(c);
    if (digit == kNoDigit) return false;
    bits = (bits << 6U) | digit;
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes.push_back(static_cast<std::uint8_t>(bits >> count));
      bits &= (1U << count) - 1;
    }
  }
  return bits == 0;  // what is left over of the last digit
}

}  // namespace disttf::roles
