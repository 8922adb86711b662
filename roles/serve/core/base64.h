// Base64 -> bytes: the standard alphabet or that of URLs, padded or not. Pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace disttf::roles {

// False: it is no base64; `bytes` is then of no use.
[[nodiscard]] bool decode_base64(std::string_view text, std::vector<std::uint8_t>& bytes);

}  // namespace disttf::roles
