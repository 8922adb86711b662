// Encodes bytes as a PNG image.
//
// Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace disttf::data {

// Returns the PNG of `pixels`: [height, width, channels], 8 bits each; 1 channel is grey, 3 are
// red, green, blue. Throws std::bad_alloc. REQUIRES: height > 0, width > 0; pixels.size() is their
// product.
[[nodiscard]] std::string encode_png(std::span<const std::uint8_t> pixels, std::size_t height,
                                     std::size_t width, std::size_t channels);

}  // namespace disttf::data
