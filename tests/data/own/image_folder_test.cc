// Folders of images by class: parts, classes, shapes, and the error messages.
#include "data/own/image_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "data/own/own_data.h"
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

}  // namespace
}  // namespace disttf::data
