#include "roles/store/core/base64.h"

namespace disttf::roles {
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

}  // namespace

std::string base64(std::span<const std::byte> bytes) {
  std::string text = in_digits(bytes, kStandardDigits);
  while (text.size() % 4 != 0) text += '=';
  return text;
}

std::string base64_for_urls(std::string_view bytes) {
  return in_digits(std::as_bytes(std::span(bytes.data(), bytes.size())), kDigitsOfUrls);
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

}  // namespace disttf::roles
