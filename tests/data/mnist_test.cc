// The real files, if ../shared/mnist exists beside the repository.
#include "data/mnist.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <span>

#include "data/sha256.h"
#include "tests/data/scratch.h"

namespace disttf::data {
namespace {

TEST(Mnist, HasTheKnownSizes) {
  EXPECT_EQ(mnist().files[0].size_bytes(), 47040016U);
  EXPECT_EQ(mnist().files[1].size_bytes(), 60008U);
  EXPECT_EQ(mnist().files[2].size_bytes(), 7840016U);
  EXPECT_EQ(mnist().files[3].size_bytes(), 10008U);
}

class RealMnist : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const SetFile& file : mnist().files) {
      const auto source = std::filesystem::path(DISTTF_MNIST_DIRECTORY) / file.gz_name();
      if (!std::filesystem::exists(source)) GTEST_SKIP() << source << " is not there";
      std::filesystem::copy_file(source, directory_.path() / file.gz_name());
    }
  }
  test::ScratchDirectory directory_;
};

TEST_F(RealMnist, FitsItsChecksums) {
  for (const SetFile& file : mnist().files) {
    const FileCheck check = check_file(directory_.path(), file);
    EXPECT_EQ(check.state, FileState::kReady) << check.sentence();
  }
}

TEST_F(RealMnist, OpensWithTheSplitsOfTensorFlow) {
  const Dataset dataset = open_file_set(directory_.path(), mnist());
  EXPECT_EQ(dataset.name, "MNIST");
  EXPECT_EQ(dataset.train.labels.size(), 55000U);
  EXPECT_EQ(dataset.train.images.size(), 55000U * 784U);
  EXPECT_EQ(dataset.validation.labels.size(), 5000U);
  EXPECT_EQ(dataset.test.labels.size(), 10000U);
  // The well-known first training labels: 5, 0, 4, 1, 9, 2.
  constexpr std::array<std::uint8_t, 6> kFirst{5, 0, 4, 1, 9, 2};
  EXPECT_TRUE(std::equal(kFirst.begin(), kFirst.end(), dataset.validation.labels.begin()));
}

TEST_F(RealMnist, IsOpenedByManyProcessesAtOnce) {
  EXPECT_EQ(test::in_children(4,
                              [&] {
                                const Dataset dataset = open_file_set(directory_.path(), mnist());
                                return dataset.test.labels[0] == 7;
                              }),
            4);
  EXPECT_EQ(directory_.names().size(), 12U) << "four .gz, four extracted, four stamps";
}

TEST_F(RealMnist, ItsIdentityIsTheHashOfItsFourFiles) {
  static_cast<void>(open_file_set(directory_.path(), mnist()));
  Sha256 identity;
  for (const SetFile& file : mnist().files) {
    const test::Bytes bytes = test::read(directory_.path() / file.name);
    identity.update(std::as_bytes(std::span(bytes)));
  }
  EXPECT_EQ(identity.hex(), mnist().checksum);
}

}  // namespace
}  // namespace disttf::data
