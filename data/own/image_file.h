// PNG and JPEG images as bytes. Which of them a file is its first bytes say, whatever its name.
//
// Pixels are as they are stored: no gamma, no colour profile and no EXIF orientation is applied. Of
// PNG, palettes become colours, 16 bits become 8, and alpha is left out. JPEG is decoded by
// libjpeg-turbo's accurate integer transform, which gives the same bytes on every machine.
//
// The time that a file takes is bounded by its own size and by the size that it declares, which has
// a bound: of a PNG no more is inflated than its rows need, whatever follows them; text, profiles
// and other chunks are skipped without being inflated; and a JPEG has at most 100 scans.
//
// Callable from any thread. Everything throws UnusableData with a sentence that begins with
// `where`, the name of the file.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace disttf::data {

struct ImageSize {
  std::size_t height = 0;
  std::size_t width = 0;
  bool is_grey = false;  // else red, green and blue
};

// From the header. An image with colours has at most kMostImageBytes; so it is told before anything
// of its size is allocated.
[[nodiscard]] ImageSize image_size(std::span<const std::uint8_t> file, const std::string& where);

// [height, width, channels] bytes; a grey image may have three equal channels, one with colours
// has them. REQUIRES: pixels.size() == height * width * channels of its image_size().
// `is_stopped`: where another thread sets it meanwhile, decoding ends within a few rows and throws.
void decode_image(std::span<const std::uint8_t> file, const std::string& where,
                  std::size_t channels, std::span<std::uint8_t> pixels,
                  const std::atomic<bool>* is_stopped = nullptr);

}  // namespace disttf::data
