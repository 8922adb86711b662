#include "net/wire/base64.h"

#include "net/wire/text.h"

namespace disttf::net {
namespace {

constexpr std::string_view kStandardDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view kDigitsOfUrls =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::size_t kMaxDigits = 10;  // 60 bits

std::string in_digits(std::span<const std::byte> bytes, std::string_view digits) {
  std::string text;
  text.reserve(bytes.size() / 3 * 4 + 4);
  std::uint32_t bits = 0;
  unsigned count = 0;
  for (const std::byte byte : bytes) {
    bits = (bits << 8U) | std::to_integer<std::uint32_t>(byte);
    count += 8;
    while (count >= 6) {
      count -= 6;
      text += digits[(bits >> count) & 63U];
    }
  }
  if (count > 0) text += digits[(bits << (6 - count)) & 63U];
  return text;
}

constexpr unsigned kNoDigit = 64;

unsigned base64_digit(char c) {
  if (c >= 'A' && c <= 'Z') return static_cast<unsigned>(c - 'A');
  if (c >= 'a' && c <= 'z') return static_cast<unsigned>(c - 'a') + 26;
  if (is_digit(c)) return static_cast<unsigned>(c - '0') + 52;
  if (c == '+' || c == '-') return 62;
  return c == '/' || c == '_' ? 63 : kNoDigit;
}

}  // namespace

std::string base64(std::span<const std::byte> bytes) {
  std::string text = in_digits(bytes, kStandardDigits);
  while (text.size() % 4 != 0) text += '=';
  return text;
}

std::string base64(std::string_view bytes) {
  return base64(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

std::string base64_for_urls(std::string_view bytes) {
  return in_digits(std::as_bytes(std::span(bytes.data(), bytes.size())), kDigitsOfUrls);
}

bool decode_base64(std::string_view text, std::vector<std::uint8_t>& bytes) {
  bytes.clear();
  // Padding is optional, but it is removed only where it completes a group of four.
  if (text.size() % 4 == 0) {
    for (int i = 0; i < 2 && text.ends_with('='); ++i) {
      text.remove_suffix(1);
    }
  }
  // A single digit has 6 bits, less than a byte, so no encoder leaves one over.
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
      // Keeps only unread bits, which the last line checks to be 0: otherwise two texts would
      // decode to the same bytes.
      bits &= (1U << count) - 1;
    }
  }
  return bits == 0;  // unused bits of the last digit must be 0
}

std::optional<std::uint64_t> base64_bits(std::string_view digits) {
  if (digits.size() > kMaxDigits) return std::nullopt;
  std::uint64_t bits = 0;
  for (const char c : digits) {
    const std::size_t digit = kStandardDigits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = (bits << 6U) | digit;
  }
  return bits;
}

}  // namespace disttf::net
