// The real files, from Debian's package dataset-fashion-mnist.
#include "data/fashion_mnist.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>

#include "data/sha256.h"
#include "tests/data/scratch.h"
#include "tests/support/engines.h"

namespace disttf::data {
namespace {

class RealFashionMnist : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kPackage)) {
      test_support::skip_without_engine(
          "there is no /usr/share/datasets/fashion-mnist: apt-get install dataset-fashion-mnist");
    }
  }

  static constexpr const char* kPackage = "/usr/share/datasets/fashion-mnist";
  test::ScratchDirectory directory_;
};

TEST_F(RealFashionMnist, IsInThePackage) {
  for (const SetFile& file : fashion_mnist().files) {
    const FileCheck check = check_gz(std::filesystem::path(kPackage) / file.gz_name(), file);
    EXPECT_EQ(check.state, FileState::kReady) << check.sentence();
  }
}

TEST_F(RealFashionMnist, OpensFromThePackage) {
  const Dataset dataset =
      open_file_set(directory_.path(), fashion_mnist(), {.gz_directory = kPackage});
  EXPECT_EQ(dataset.name, "Fashion-MNIST");
  EXPECT_EQ(dataset.shape, ImageShape{});
  EXPECT_EQ(dataset.train.labels.size(), 55000U);
  EXPECT_EQ(dataset.test.labels.size(), 10000U);
  ASSERT_EQ(dataset.class_names.size(), dataset.classes);
  // The first training images are an ankle boot and two tops, as the authors' page shows.
  constexpr std::array<std::uint8_t, 3> kFirst{9, 0, 0};
  EXPECT_TRUE(std::equal(kFirst.begin(), kFirst.end(), dataset.validation.labels.begin()));
  EXPECT_EQ(dataset.class_names[9], "Ankle boot");
}

TEST_F(RealFashionMnist, ItsIdentityIsTheHashOfItsFourFiles) {
  static_cast<void>(open_file_set(directory_.path(), fashion_mnist(), {.gz_directory = kPackage}));
  Sha256 identity;
  for (const SetFile& file : fashion_mnist().files) {
    const test::Bytes bytes = test::read(directory_.path() / file.name);
    identity.update(std::as_bytes(std::span(bytes)));
  }
  EXPECT_EQ(identity.hex(), fashion_mnist().checksum);
}

}  // namespace
}  // namespace disttf::data
