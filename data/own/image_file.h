// Decodes PNG and JPEG images. The first bytes decide which format a file has, not its name.
//
// Pixels are used as stored: no gamma, colour profile or EXIF orientation is applied. In PNG,
// palettes become colours, 16 bits become 8, and alpha is dropped. JPEG is decoded by
// libjpeg-turbo's accurate integer transform, which is bit-identical on every machine.
//
// The decoding time is bounded by the file's size and by its declared image size, which is limited.
// For a PNG no more is inflated than its rows need, whatever follows them; text, profiles and other
// chunks are skipped without inflation. A JPEG may have at most 100 scans.
//
// Callable from any thread. Every function throws UnusableData with a sentence that begins with
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
  bool is_grey = false;  // otherwise red, green and blue
};

// Reads the size from the header. Refuses an image of more than kMostImageBytes (as colours), so
// the limit applies before anything of that size is allocated.
[[nodiscard]] ImageSize image_size(std::span<const std::uint8_t> file, const std::string& where);

// Decodes into [height, width, channels] bytes. A grey image may be decoded to three equal
// channels; a colour image requires three. REQUIRES: pixels.size() == height * width * channels of
// its image_size(). If another thread sets `is_stopped`, decoding ends within a few rows and
// throws.
void decode_image(std::span<const std::uint8_t> file, const std::string& where,
                  std::size_t channels, std::span<std::uint8_t> pixels,
                  const std::atomic<bool>* is_stopped = nullptr);

}  // namespace disttf::data
