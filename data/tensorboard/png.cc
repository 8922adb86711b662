#include "data/tensorboard/png.h"

#include <png.h>

#include <cassert>
#include <new>

namespace disttf::data {

std::string encode_png(std::span<const std::uint8_t> pixels, std::size_t height, std::size_t width,
                       std::size_t channels) {
  assert(pixels.size() == height * width * channels);
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.height = static_cast<png_uint_32>(height);
  image.width = static_cast<png_uint_32>(width);
  image.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  std::string file(PNG_IMAGE_PNG_SIZE_MAX(image), '\0');
  png_alloc_size_t size = file.size();
  // An image in memory can fail only for lack of memory.
  if (png_image_write_to_memory(&image, file.data(), &size, /*convert_to_8_bit=*/0, pixels.data(),
                                /*row_stride=*/0, nullptr) == 0) {
    throw std::bad_alloc();
  }
  file.resize(size);
  return file;
}

}  // namespace disttf::data
