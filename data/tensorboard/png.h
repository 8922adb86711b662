// An image of bytes as a PNG file.
//
// Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace disttf::data {

// `pixels`: [height, width, channels], 8 bits each, channels last: 1, grey, or 3, red, green, blue.
// Throws std::bad_alloc. REQUIRES: height > 0, width > 0; pixels.size() is their product.
[[nodiscard]] std::string encode_png(std::span<const std::uint8_t> pixels, std::size_t height,
                                     std::size_t width, std::size_t channels);

}  // namespace disttf::data
