// PNG and JPEG: conversion of the pixels, and the error messages for broken and too large images.
#include "data/own/image_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "data/own/row_source.h"
#include "tests/data/own/images_on_disk.h"

namespace disttf::data {
namespace {

using test::Bytes;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

Bytes decoded(const Bytes& file, std::size_t channels) {
  const ImageSize size = image_size(file, "a.png");
  Bytes pixels(size.height * size.width * channels);
  decode_image(file, "a.png", channels, pixels);
  return pixels;
}

std::string refusal(const Bytes& file) {
  return test::refusal_of([&] { static_cast<void>(decoded(file, 3)); }, "/none");
}

void put_number(Bytes& bytes, std::uint32_t number) {
  for (const unsigned shift : {24U, 16U, 8U, 0U}) {
    bytes.push_back(static_cast<std::uint8_t>(number >> shift));
  }
}

// The beginning of a PNG that declares its size.
Bytes png_header(std::uint32_t width, std::uint32_t height) {
  Bytes bytes = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n', 0, 0, 0, 13, 'I', 'H', 'D', 'R'};
  put_number(bytes, width);
  put_number(bytes, height);
  bytes.insert(bytes.end(), {8, 2, 0, 0, 0});
  put_number(bytes, static_cast<std::uint32_t>(crc32(0, bytes.data() + 12, 17)));
  bytes.insert(bytes.end(), {0, 0, 0, 0, 'I', 'D', 'A', 'T', 0x35, 0xAF, 0x06, 0x1E});
  return bytes;
}

TEST(ImageFile, HasThePixelsOfAPng) {
  const Bytes grey = {0, 1, 2, 253, 254, 255};
  const Bytes file = test::png(2, 3, PNG_FORMAT_GRAY, grey);
  const ImageSize size = image_size(file, "a.png");
  EXPECT_EQ(size.height, 2U);
  EXPECT_EQ(size.width, 3U);
  EXPECT_TRUE(size.is_grey);
  EXPECT_THAT(decoded(file, 1), ElementsAreArray(grey));
  EXPECT_THAT(decoded(test::png(1, 2, PNG_FORMAT_GRAY, Bytes{7, 9}), 3),
              ElementsAre(7, 7, 7, 9, 9, 9));
  const Bytes colours = {255, 0, 3, 10, 20, 30};
  EXPECT_FALSE(image_size(test::png(2, 1, PNG_FORMAT_RGB, colours), "a.png").is_grey);
  EXPECT_THAT(decoded(test::png(2, 1, PNG_FORMAT_RGB, colours), 3), ElementsAreArray(colours));
}

TEST(ImageFile, LeavesAlphaOutAndMakes8BitsOf16WithoutGamma) {
  EXPECT_THAT(decoded(test::png(1, 2, PNG_FORMAT_RGBA, Bytes{9, 8, 7, 255, 10, 20, 30, 0}), 3),
              ElementsAre(9, 8, 7, 10, 20, 30));
  EXPECT_THAT(decoded(test::png(1, 2, PNG_FORMAT_LINEAR_Y, Bytes{0xFF, 0, 0xFF, 0x7F}), 1),
              ElementsAre(1, 127));
}

TEST(ImageFile, HasThePixelsOfAJpeg) {
  const Bytes grey(8 * 16, 100);
  for (const bool is_progressive : {false, true}) {
    const Bytes file = test::jpeg(8, 16, {.channels = 1, .is_progressive = is_progressive}, grey);
    EXPECT_TRUE(image_size(file, "a.jpg").is_grey);
    EXPECT_EQ(image_size(file, "a.jpg").height, 8U);
    EXPECT_THAT(decoded(file, 1), ElementsAreArray(grey));
    EXPECT_THAT(decoded(file, 3), testing::Each(100));
  }
  Bytes red;
  for (int i = 0; i < 64; ++i) red.insert(red.end(), {200, 30, 40});
  const Bytes pixels = decoded(test::jpeg(8, 8, {}, red), 3);
  ASSERT_EQ(pixels.size(), red.size());
  for (std::size_t i = 0; i < red.size(); ++i) EXPECT_NEAR(pixels[i], red[i], 2);
}

TEST(ImageFile, DoesNotTurnAJpegAsItsExifSays) {
  const Bytes file = test::jpeg(8, 16, {.is_turned = true}, Bytes(8 * 16 * 3));
  EXPECT_EQ(image_size(file, "a.jpg").height, 8U);
  EXPECT_EQ(image_size(file, "a.jpg").width, 16U);
}

TEST(ImageFile, RefusesWhatIsNoImage) {
  for (const Bytes& file : {Bytes{}, Bytes{0x89}, test::bytes_of("GIF89a"), Bytes{0xFF, 0xD8}}) {
    EXPECT_EQ(refusal(file), "a.png: it is neither a PNG nor a JPEG image");
  }
  EXPECT_EQ(refusal(test::jpeg(8, 8, {.channels = 4}, Bytes(256))),
            "a.png: it has 4 colours (for print); only grey and RGB are supported");
}

// A few bytes that declare gigabytes.
TEST(ImageFile, RefusesAnImageThatIsTooLargeBeforeItIsDecoded) {
  EXPECT_EQ(refusal(png_header(60'000, 60'000)),
            "a.png: it has 60000x60000 pixels; at most 64 MiB of them, with three bytes each, are "
            "allowed");
  EXPECT_THAT(refusal(png_header(2'000'000'000, 1)),
              HasSubstr("a.png: it is a broken PNG image: "));
  EXPECT_THAT(refusal(png_header(8, 8)), HasSubstr("a.png: it is a broken PNG image: "));
  Bytes wide = test::jpeg(8, 8, {}, Bytes(192));
  const Bytes frame = {0xFF, 0xC0, 0, 17, 8};
  const auto at = std::ranges::search(wide, frame).begin();
  ASSERT_NE(at, wide.end());
  std::ranges::copy(Bytes{0xFF, 0, 0xFF, 0}, at + 5);
  EXPECT_THAT(refusal(wide), HasSubstr("a.png: it has 65280x65280 pixels; "));
}

TEST(ImageFile, RefusesAFileThatWasCutAnywhere) {
  Bytes pixels(24 * 24 * 3);
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = static_cast<std::uint8_t>(i * i % 251);
  }
  const Bytes png = test::png(24, 24, PNG_FORMAT_RGB, pixels);
  for (std::size_t length = 8; length < png.size(); length += 7) {
    EXPECT_THAT(refusal({png.begin(), png.begin() + static_cast<std::ptrdiff_t>(length)}),
                HasSubstr("a.png: it is a broken PNG image: "))
        << length;
  }
  for (const bool is_progressive : {false, true}) {
    const Bytes jpeg = test::jpeg(24, 24, {.is_progressive = is_progressive}, pixels);
    for (std::size_t length = 3; length < jpeg.size() - 1; length += 7) {
      EXPECT_THAT(refusal({jpeg.begin(), jpeg.begin() + static_cast<std::ptrdiff_t>(length)}),
                  HasSubstr("a.png: it is a broken JPEG image: "))
          << length;
    }
  }
}

// Appends a chunk with its checksum.
void put_chunk(Bytes& file, std::string_view name, const Bytes& contents) {
  put_number(file, static_cast<std::uint32_t>(contents.size()));
  const auto begin = static_cast<std::ptrdiff_t>(file.size());
  file.insert(file.end(), name.begin(), name.end());
  file.insert(file.end(), contents.begin(), contents.end());
  put_number(file,
             static_cast<std::uint32_t>(crc32(
                 0, file.data() + begin, static_cast<uInt>(file.end() - file.begin() - begin))));
}

// A grey image whose rows inflate to `inflated`.
Bytes png_of(std::uint8_t side, const Bytes& inflated, std::uint8_t interlace) {
  uLongf size = compressBound(inflated.size());
  Bytes packed(size);
  compress(packed.data(), &size, inflated.data(), inflated.size());
  packed.resize(size);
  Bytes file = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  put_chunk(file, "IHDR", {0, 0, 0, side, 0, 0, 0, side, 8, 0, 0, 0, interlace});
  put_chunk(file, "IDAT", packed);
  put_chunk(file, "IEND", {});
  return file;
}

Bytes png_of_zeros(std::size_t inflated, std::uint8_t interlace = 0) {
  return png_of(2, Bytes(inflated), interlace);
}

TEST(ImageFile, HasThePixelsOfAnInterlacedPngWhateverFollowsThem) {
  // By pass: 0 0; 2 0; 0 2, 2 2; 1 0; 1 2; row 1.
  Bytes inflated = {0, 1, 0, 3, 0, 7, 9, 0, 2, 0, 8, 0, 4, 5, 6};
  EXPECT_THAT(decoded(png_of(3, inflated, 1), 1), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9));
  inflated.resize(std::size_t{1} << 20U);
  EXPECT_THAT(decoded(png_of(3, inflated, 1), 1), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9));
  inflated.resize(12);
  EXPECT_THAT(refusal(png_of(3, inflated, 1)), HasSubstr("it is a broken PNG image"));
}

// Data after the last row is not inflated, so damage in it has no effect.
TEST(ImageFile, InflatesNoMoreOfAPngThanItsRowsNeed) {
  for (const std::uint8_t interlace : {std::uint8_t{0}, std::uint8_t{1}}) {
    Bytes file = png_of_zeros(std::size_t{16} << 20U, interlace);
    EXPECT_THAT(decoded(file, 1), ElementsAre(0, 0, 0, 0));
    // The end of the compressed data, before its checksum and the last chunk.
    const std::size_t end = file.size() - 12 - 4;
    for (std::size_t i = end - 2000; i < end; ++i) file[i] = 0xFF;
    const std::uint32_t length = static_cast<std::uint32_t>(end - 41);
    const auto sum = crc32(0, file.data() + 37, length + 4);
    for (std::size_t i = 0; i < 4; ++i) {
      file[end + i] = static_cast<std::uint8_t>(sum >> (24 - 8 * i));
    }
    EXPECT_THAT(decoded(file, 1), ElementsAre(0, 0, 0, 0));
  }
}

TEST(ImageFile, RefusesAPngWithAWrongChecksumBehindItsPixels) {
  Bytes file = png_of_zeros(6);
  file[file.size() - 13] ^= 1U;  // of the last IDAT
  EXPECT_EQ(refusal(file), "a.png: it is a broken PNG image: a chunk has a wrong checksum (CRC)");
  file = png_of_zeros(6);
  file.resize(file.size() - 12);
  EXPECT_EQ(refusal(file), "a.png: it is a broken PNG image: the file ends too early");
}

// Each of these chunks would inflate to 8 MiB, which libpng allows.
TEST(ImageFile, SkipsTextAndProfilesWithoutInflatingThem) {
  const Bytes zeros(std::size_t{8} << 20U);
  uLongf size = compressBound(zeros.size());
  Bytes packed(size);
  compress(packed.data(), &size, zeros.data(), zeros.size());
  packed.resize(size);
  Bytes text = {'k', 0, 0};
  text.insert(text.end(), packed.begin(), packed.end());
  text.back() ^= 1U;  // inflating it would detect the damage
  Bytes file = png_of_zeros(6);
  Bytes chunks(file.begin(), file.begin() + 33);
  for (int i = 0; i < 50; ++i) {
    put_chunk(chunks, "zTXt", text);
    put_chunk(chunks, "iCCP", text);
  }
  chunks.insert(chunks.end(), file.begin() + 33, file.end());
  EXPECT_THAT(decoded(chunks, 1), ElementsAre(0, 0, 0, 0));
}

TEST(ImageFile, StopsWhereItIsAskedTo) {
  const std::atomic<bool> is_stopped = true;
  const Bytes pixels(64 * 64 * 3, 100);
  for (const Bytes& file :
       {test::png(64, 64, PNG_FORMAT_RGB, pixels), test::jpeg(64, 64, {}, pixels),
        test::jpeg(64, 64, {.is_progressive = true}, pixels)}) {
    Bytes out(pixels.size());
    EXPECT_THAT(
        test::refusal_of([&] { decode_image(file, "a.png", 3, out, &is_stopped); }, "/none"),
        HasSubstr("decoding was stopped"));
  }
}

// Each scan covers the whole image, so a small file could take hours.
TEST(ImageFile, RefusesAJpegOfThousandsOfScans) {
  Bytes file = test::jpeg(8, 8, {.is_progressive = true}, Bytes(192));
  const Bytes scan_mark = {0xFF, 0xDA};
  const auto last = std::ranges::find_end(file, scan_mark);
  ASSERT_FALSE(last.empty());
  const Bytes scan(last.begin(), file.end() - 2);
  file.resize(file.size() - 2);
  for (int i = 0; i < 1000; ++i) file.insert(file.end(), scan.begin(), scan.end());
  file.insert(file.end(), {0xFF, 0xD9});
  EXPECT_EQ(refusal(file), "a.png: it is a broken JPEG image: it has more than 100 scans");
}

}  // namespace
}  // namespace disttf::data
