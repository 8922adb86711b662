#include "roles/launch/shell/run_secret.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>

#include "net/transport/secrets.h"

namespace disttf::roles {

std::string base64_of(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  while (!bytes.empty()) {
    const std::size_t count = std::min<std::size_t>(bytes.size(), 3);
    std::uint32_t bits = 0;  // 24 of them, from the top
    for (std::size_t each = 0; each < 3; ++each) {
      bits = bits << 8U | (each < count ? std::to_integer<std::uint32_t>(bytes[each]) : 0U);
    }
    for (std::size_t each = 0; each < 4; ++each) {
      text += each <= count ? kDigits[bits >> (18U - 6U * each) & 63U] : '=';
    }
    bytes = bytes.subspan(count);
  }
  return text;
}

std::string make_run_secret() {
  std::array<std::byte, net::kLeastSecretBytes> bytes{};
  // So few come at once, or not at all.
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw std::system_error(errno, std::generic_category(), "cannot make a secret for the run");
  }
  return base64_of(bytes);
}

std::vector<std::string> secret_variables(SecretOfRun kind, const std::string& made) {
  if (kind == SecretOfRun::kGiven) return {};
  return {net::kSecretVariable + ("=" + made)};
}

}  // namespace disttf::roles
