// PNG and JPEG images, created for tests.
#pragma once

#include <png.h>

#include <cstdint>
#include <cstdlib>
#include <span>

#include "tests/data/scratch.h"

// jpeglib.h needs FILE to be declared.
#include <jpeglib.h>

namespace disttf::data::test {

// `format` is libpng's: PNG_FORMAT_GRAY, PNG_FORMAT_RGB, PNG_FORMAT_RGBA, or PNG_FORMAT_LINEAR_Y
// with two bytes in native order.
inline Bytes png(std::uint32_t height, std::uint32_t width, std::uint32_t format,
                 std::span<const std::uint8_t> pixels) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = width;
  image.height = height;
  image.format = format;
  png_alloc_size_t size = 0;
  png_image_write_to_memory(&image, nullptr, &size, 0, pixels.data(), 0, nullptr);
  Bytes bytes(size);
  png_image_write_to_memory(&image, bytes.data(), &size, 0, pixels.data(), 0, nullptr);
  bytes.resize(size);
  return bytes;
}

struct JpegOptions {
  int channels = 3;  // 1, 3, or 4: CMYK
  bool is_progressive = false;
  bool is_turned = false;  // adds an EXIF orientation
};

inline Bytes jpeg(std::uint32_t height, std::uint32_t width, const JpegOptions& options,
                  std::span<const std::uint8_t> pixels) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &memory, &size);
  jpeg.image_height = height;
  jpeg.image_width = width;
  jpeg.input_components = options.channels;
  jpeg.in_color_space = options.channels == 1   ? JCS_GRAYSCALE
                        : options.channels == 3 ? JCS_RGB
                                                : JCS_CMYK;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, 100, TRUE);
  if (options.is_progressive) jpeg_simple_progression(&jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  if (options.is_turned) {
    // Big-endian TIFF with one field: orientation (0x0112), one short: 6.
    const Bytes exif = {'E', 'x',  'i', 'f', 0, 0, 'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1,
                        1,   0x12, 0,   3,   0, 0, 0,   1,   0, 6,  0, 0, 0, 0, 0, 0};
    jpeg_write_marker(&jpeg, JPEG_APP0 + 1, exif.data(), static_cast<unsigned>(exif.size()));
  }
  const auto row_bytes = std::size_t{width} * static_cast<std::size_t>(options.channels);
  for (std::size_t y = 0; y < height; ++y) {
    auto* row = const_cast<JSAMPROW>(pixels.data() + y * row_bytes);  // libjpeg only reads it
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  Bytes bytes(memory, memory + size);
  jpeg_destroy_compress(&jpeg);
  std::free(memory);
  return bytes;
}

}  // namespace disttf::data::test
