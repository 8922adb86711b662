// image_size and decode_image: any bytes give as many pixels as their header says, or one sentence
// that begins with the file. Large images are not decoded, to save time.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/own/image_file.h"
#include "data/own/row_source.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace disttf::data;
  using disttf::fuzz::require;
  constexpr std::size_t kMostPixels = std::size_t{1} << 20U;
  try {
    const ImageSize image = image_size({data, size}, "a.png");
    require(image.height > 0 && image.width > 0);
    require(image.height * image.width * 3 <= kMostImageBytes);
    if (image.height * image.width > kMostPixels) return 0;
    const std::size_t channels = image.is_grey && size % 2 == 0 ? 1 : 3;
    std::vector<std::uint8_t> pixels(image.height * image.width * channels);
    decode_image({data, size}, "a.png", channels, pixels);
  } catch (const UnusableData& error) {
    disttf::fuzz::require_sentence(error.what(), "a.png: ", 400);
  }
  return 0;
}
