// Folders of images by class: parts, classes, shapes, and the error messages.
#include "data/own/image_folder.h"

#include <gmock/gmock.h>
#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "data/own/image_file.h"
#include "data/own/own_data.h"
#include "data/own/row_source.h"
#include "math/random.h"
#include "tests/data/own/images_on_disk.h"

namespace disttf::data {
namespace {

using test::Bytes;
using testing::ElementsAre;
using testing::HasSubstr;

class ImageFolder : public testing::Test {
 protected:
  // A grey image of one colour.
  static Bytes grey(std::uint8_t colour, std::uint32_t height = 2, std::uint32_t width = 3) {
    return test::png(height, width, PNG_FORMAT_GRAY, Bytes(std::size_t{height} * width, colour));
  }
  void put(const std::string& name, const Bytes& bytes) {
    const auto path = directory() / name;
    std::filesystem::create_directories(path.parent_path());
    test::write(path, bytes);
  }
  // Writes `count` images of a class; the colour of each is its number.
  void put_class(const std::string& name, int count, int first = 0) {
    for (int i = first; i < first + count; ++i) {
      put(name + "/" + std::to_string(1000 + i) + ".png", grey(static_cast<std::uint8_t>(i)));
    }
  }
  [[nodiscard]] std::filesystem::path directory() const { return scratch_.path() / "pets"; }
  Dataset open(const OwnDataOptions& options) {
    OwnDataHooks hooks;
    hooks.cache_directory = scratch_.path() / "cache";
    hooks.purpose = static_cast<std::uint32_t>(math::Purpose::kHoldOut);
    hooks.random_bits = &math::random_bits;
    hooks.threads = 3;
    hooks.on_progress = [this](std::uint64_t bytes, std::uint64_t all) {
      EXPECT_LE(bytes, all);
      ++progress_;
    };
    return open_own_data(options, hooks).dataset;
  }
  Dataset open() { return open({.path = directory()}); }
  std::string refusal() {
    return test::refusal_of([&] { static_cast<void>(open()); }, scratch_.path());
  }
  test::ScratchDirectory scratch_;
  int progress_ = 0;
};

TEST_F(ImageFolder, HasAClassForEachFolder) {
  put_class("dog", 60);
  put_class("Cat", 40, 100);
  const Dataset dataset = open();
  EXPECT_EQ(dataset.name, "pets");
  EXPECT_EQ(dataset.shape, (ImageShape{.height = 2, .width = 3, .channels = 1}));
  EXPECT_THAT(dataset.class_names, ElementsAre("Cat", "dog"));
  EXPECT_EQ(dataset.train.rows(), 80U);
  EXPECT_EQ(dataset.validation.rows(), 10U);
  EXPECT_EQ(dataset.test.rows(), 10U);
  std::vector<int> seen(200);
  for (const Split* split : {&dataset.train, &dataset.validation, &dataset.test}) {
    ASSERT_EQ(split->images.size(), split->rows() * 6);
    for (std::size_t row = 0; row < split->rows(); ++row) {
      const std::uint8_t colour = split->images[row * 6 + 5];
      ++seen.at(colour);
      EXPECT_EQ(split->labels[row], colour < 100 ? 1 : 0);
    }
  }
  EXPECT_EQ(std::ranges::count(seen, 1), 100);
  EXPECT_GT(progress_, 1);
  EXPECT_EQ(open().checksum, dataset.checksum);
}

TEST_F(ImageFolder, HasThePartsOfItsFolders) {
  put_class("train/0", 20);
  put_class("train/1", 20);
  put_class("Val/0", 3);
  put_class("Val/1", 2);
  put_class("test/1", 2, 7);
  put("notes.txt", {1});
  put("raw/anything/more/x.png", {1});
  const Dataset dataset = open();
  EXPECT_EQ(dataset.train.rows(), 40U);
  EXPECT_EQ(dataset.validation.rows(), 5U);
  EXPECT_THAT(dataset.test.labels, ElementsAre(1, 1));
  EXPECT_EQ(dataset.test.images[6], 8);
}

TEST_F(ImageFolder, MayHaveAClassCalledTrain) {
  put_class("train", 20);
  put_class("car", 20);
  EXPECT_THAT(open().class_names, ElementsAre("car", "train"));
}

TEST_F(ImageFolder, IsOfColoursWhereOneImageIs) {
  put_class("a", 20, 50);
  put_class("b", 20);
  put("b/1.jpeg", test::jpeg(2, 3, {}, Bytes(18, 200)));
  const Dataset dataset = open();
  EXPECT_EQ(dataset.shape.channels, 3U);
  EXPECT_EQ(dataset.train.images[0], dataset.train.images[2]) << "of a grey image";
}

TEST_F(ImageFolder, LeavesAloneWhatIsNoImage) {
  put_class("a", 20);
  put_class("b", 20);
  put("a/Thumbs.db", {1});
  put("a/._1000.png", {1});
  put(".checkpoints/x.png", {1});
  put("a/upper.PNG", grey(1));
  const Dataset dataset = open();
  EXPECT_EQ(dataset.train.rows() + dataset.validation.rows() + dataset.test.rows(), 41U);
}

TEST_F(ImageFolder, IsConvertedAnewWhenAFileHasChanged) {
  put_class("a", 20);
  put_class("b", 20);
  const std::string checksum = open().checksum;
  put("a/1003.png", grey(77));
  const auto path = directory() / "a/1003.png";
  std::filesystem::last_write_time(
      path, std::filesystem::last_write_time(path) + std::chrono::seconds(1));
  EXPECT_NE(open().checksum, checksum);
}

TEST_F(ImageFolder, RefusesImagesOfTwoSizes) {
  put_class("a", 20);
  put_class("b", 20);
  put("b/1007.png", grey(7, 3, 2));
  EXPECT_EQ(refusal(),
            "pets/b/1007.png has 3x2 pixels, pets/a/1000.png has 2x3; images of one "
            "size are expected");
}

TEST_F(ImageFolder, RefusesImagesOfTwoSizesInTwoParts) {
  put_class("train/a", 20);
  put_class("train/b", 20);
  put("test/a/x.png", grey(7, 2, 2));
  EXPECT_EQ(refusal(),
            "pets/test/a/x.png has 2x2 pixels, pets/train/a/1000.png has 2x3; images of "
            "one size are expected");
}

TEST_F(ImageFolder, RefusesFilesThatAreBroken) {
  put_class("a", 20);
  put("b/x.jpg", test::bytes_of("<html>"));
  EXPECT_EQ(refusal(), "pets/b/x.jpg: it is neither a PNG nor a JPEG image");
  Bytes cut = grey(1);
  cut.resize(cut.size() - 20);
  put("b/x.jpg", cut);
  EXPECT_THAT(refusal(), HasSubstr("pets/b/x.jpg: it is a broken PNG image: "));
}

TEST_F(ImageFolder, RefusesFoldersThatDoNotFit) {
  put_class("train/a", 2);
  std::filesystem::create_directories(directory() / "train/b");
  EXPECT_EQ(refusal(),
            "--data: pets/train/b is a class folder without images (.png, .jpg, "
            ".jpeg)");
  put("train/b/deeper/x.png", grey(1));
  EXPECT_EQ(refusal(),
            "--data: pets/train/b/deeper is a folder inside a class folder, which may "
            "contain only images");
  std::filesystem::remove_all(directory() / "train/b");
  put("train/b/x.webp", {1});
  EXPECT_EQ(refusal(), "--data: pets/train/b/x.webp: .png, .jpg and .jpeg are read");
  std::filesystem::remove_all(directory() / "train/b");
  std::filesystem::create_directories(directory() / "val");
  EXPECT_EQ(refusal(), "--data: pets/val has no class folders");
  put("val/a/x.png", grey(1));
  put("valid/a/x.png", grey(1));
  EXPECT_EQ(refusal(), "--data: pets has both val and valid; one of them is allowed");
}

TEST_F(ImageFolder, RefusesMoreThan256Classes) {
  for (int i = 0; i < 257; ++i) put("c" + std::to_string(i) + "/x.png", grey(1));
  EXPECT_EQ(refusal(), "--data: pets has more than 256 class folders, which is the limit");
}

TEST_F(ImageFolder, FollowsLinksInsideOfItAlone) {
  put_class("a", 20);
  put_class("b", 20);
  std::filesystem::create_symlink("1001.png", directory() / "b/link.png");
  EXPECT_EQ(open().train.rows() + open().validation.rows() + open().test.rows(), 41U);
  test::write(scratch_.path() / "secret.png", grey(1));
  std::filesystem::create_symlink("../../secret.png", directory() / "b/out.png");
  EXPECT_EQ(refusal(),
            "--data: pets/b/out.png leads out of pets; only files inside the folder "
            "are read");
  std::filesystem::remove(directory() / "b/out.png");
  std::filesystem::create_directory_symlink(scratch_.path(), directory() / "c");
  EXPECT_THAT(refusal(), HasSubstr("pets/c leads out of "));
  std::filesystem::remove(directory() / "c");
  std::filesystem::create_symlink("nowhere", directory() / "c");
  EXPECT_THAT(refusal(), HasSubstr("--data: cannot follow pets/c: No such file"));
}

TEST_F(ImageFolder, HasNoColumns) {
  put_class("a", 20);
  put_class("b", 20);
  EXPECT_EQ(
      test::refusal_of([&] { static_cast<void>(open({.path = directory(), .label_column = "1"})); },
                       scratch_.path()),
      "--data: pets has images, which have no columns, lines or labels that are numbers");
}

// PNG and JPEG: conversion of the pixels, and the error messages for broken and too large images.

using testing::ElementsAreArray;

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
