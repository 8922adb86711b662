// A data set whose files come in one archive, from a mirror to memory. It is a small one made up
// here: the real archives are not to be had by a test.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>

#include "data/checksums.h"
#include "net/wire/server_requests.h"
#include "run/outcome.h"
#include "storage/download/dataset_source.h"
#include "storage/download/datasets.h"
#include "tests/data/archives.h"
#include "tests/support/mirror_server.h"
#include "tests/support/thrown.h"

namespace disttf::roles {
namespace {

using data::test::Bytes;
using test_support::MirrorServer;
using testing::HasSubstr;

// Two files of records of 1x1 grey images: three to train on and validate, two for the test. What a
// row of the registry points to lives for ever.
struct Photographs {
  Bytes packed = data::test::gzip(data::test::tar(
      {{"set/train.bin", {0, 10, 1, 11, 2, 12}}, {"set/test.bin", {3, 13, 4, 14}}}));
  std::string sha256 = data::sha256_hex(std::as_bytes(std::span(packed)));
  data::Archive archive{.name = "set.tar.gz",
                        .kind = data::ArchiveKind::kTarGz,
                        .size_bytes = packed.size(),
                        .sha256 = sha256};
  std::array<data::SetFile, 2> files{file("set/train.bin", false, 3),
                                     file("set/test.bin", true, 2)};
  data::FileSet set{.name = "Photographs", .checksum = {}, .files = files, .validation_rows = 1};
  DatasetRow row{.name = "photographs",
                 .number = 200,
                 .files = []() noexcept -> const data::FileSet& { return instance().set; }};

  data::SetFile file(std::string_view name, bool is_test, std::uint32_t rows) {
    return {.name = name,
            .kind = data::FileKind::kRecords,
            .is_test = is_test,
            .rows = rows,
            .shape = {.height = 1, .width = 1, .channels = 1},
            .archive = &archive,
            .member = name};
  }
  static Photographs& instance() {
    static Photographs photographs;
    return photographs;
  }
};

class ArchivedDatasetTest : public testing::Test {
 protected:
  // The archive as a mirror has it.
  static test_support::Files served(const Bytes& bytes = Photographs::instance().packed) {
    return {{"/set.tar.gz", std::string(bytes.begin(), bytes.end())}};
  }
  DataOptions from(const MirrorServer& server) const {
    return {.own = {},
            .dataset = &Photographs::instance().row,
            .directory = directory_.path(),
            .mirrors = {server.url()},
            .ca_file = {},
            .proxy = {}};
  }
  static bool opens(const DataOptions& options) {
    const StopSignal stop;
    const data::Dataset dataset = open_dataset(options, stop);
    return dataset.train.labels.size() == 2 && dataset.train.images[1] == 12 &&
           dataset.validation.labels[0] == 0 && dataset.test.images[1] == 14;
  }
  static std::string failure(const DataOptions& options) {
    return sentence_of<Failure>([&] { return opens(options); }, "nothing");
  }

  data::test::ScratchDirectory directory_;
};

TEST_F(ArchivedDatasetTest, IsDownloadedOnceForAllItsFiles) {
  const MirrorServer server(test_support::serve(served()));
  EXPECT_TRUE(opens(from(server)));
  EXPECT_TRUE(opens(from(server)));
  EXPECT_EQ(server.requests().size(), 1U);
}

TEST_F(ArchivedDatasetTest, IsDownloadedOnceForSeveralTasks) {
  MirrorServer server(test_support::serve(served()), MirrorServer::Start::kLater);
  EXPECT_EQ(data::test::in_children(
                4, [&] { return opens(from(server)); }, [&] { server.start(); }),
            4);
  EXPECT_EQ(server.requests().size(), 1U);
}

TEST_F(ArchivedDatasetTest, GoesOnWhereADownloadBrokeOff) {
  const Bytes& packed = Photographs::instance().packed;
  data::test::write(directory_.path() / "set.tar.gz.part",
                    std::span(packed).first(packed.size() / 2));
  const MirrorServer server(test_support::serve(served()));
  EXPECT_TRUE(opens(from(server)));
  ASSERT_EQ(server.requests().size(), 1U);
  EXPECT_EQ(server.requests()[0].range_begin(), packed.size() / 2);
}

TEST_F(ArchivedDatasetTest, IsNotTakenFromAMirrorThatHasAnother) {
  Bytes other = Photographs::instance().packed;
  other[12] ^= 1;
  const MirrorServer server(test_support::serve(served(other)));
  EXPECT_THAT(failure(from(server)), HasSubstr("the downloaded file has SHA-256"));
  EXPECT_FALSE(std::filesystem::exists(directory_.path() / "set.tar.gz"));
}

// Files that another program has extracted have no verified checksum: the archive is downloaded,
// and its files replace them.
TEST_F(ArchivedDatasetTest, IsDownloadedWhereAnotherUserHasExtractedIt) {
  std::filesystem::create_directory(directory_.path() / "set");
  data::test::write(directory_.path() / "set/train.bin", Bytes{9, 9, 9, 9, 9, 9});
  const MirrorServer server(test_support::serve(served()));
  EXPECT_TRUE(opens(from(server)));
  EXPECT_EQ(server.requests().size(), 1U);
  EXPECT_EQ(data::test::read(directory_.path() / "set/train.bin"), (Bytes{0, 10, 1, 11, 2, 12}));
}

// What a driver of another release orders by number, and what a chief publishes by word, must be
// the same set for ever.
TEST(Datasets, KeepTheirNumbersAndWords) {
  ASSERT_GE(datasets().size(), 2U);
  EXPECT_EQ(find_dataset_of_number(2), find_dataset("mnist"));
  EXPECT_EQ(find_dataset_of_number(3), find_dataset("digits"));
  EXPECT_EQ(find_dataset_of_word("MNIST"), find_dataset("mnist"));
  EXPECT_EQ(find_dataset_of_word("Digits"), find_dataset("digits"));
  EXPECT_EQ(find_dataset_of_number(5), find_dataset("kmnist"));
  EXPECT_EQ(find_dataset_of_word("KMNIST"), find_dataset("kmnist"));
  EXPECT_EQ(find_dataset_of_number(4), find_dataset("fashion_mnist"));
  EXPECT_EQ(find_dataset_of_word("Fashion-MNIST"), find_dataset("fashion_mnist"));
  EXPECT_EQ(find_dataset_of_number(6), find_dataset("qmnist"));
  EXPECT_EQ(find_dataset_of_word("QMNIST"), find_dataset("qmnist"));
  EXPECT_EQ(find_dataset_of_number(7), find_dataset("emnist_byclass"));
  EXPECT_EQ(find_dataset_of_word("EMNIST-byclass"), find_dataset("emnist_byclass"));
  EXPECT_EQ(find_dataset_of_number(8), find_dataset("emnist_bymerge"));
  EXPECT_EQ(find_dataset_of_word("EMNIST-bymerge"), find_dataset("emnist_bymerge"));
  EXPECT_EQ(find_dataset_of_number(9), find_dataset("emnist_balanced"));
  EXPECT_EQ(find_dataset_of_word("EMNIST-balanced"), find_dataset("emnist_balanced"));
  EXPECT_EQ(find_dataset_of_number(10), find_dataset("emnist_letters"));
  EXPECT_EQ(find_dataset_of_word("EMNIST-letters"), find_dataset("emnist_letters"));
  EXPECT_EQ(find_dataset_of_number(11), find_dataset("emnist_digits"));
  EXPECT_EQ(find_dataset_of_word("EMNIST-digits"), find_dataset("emnist_digits"));
  EXPECT_EQ(find_dataset_of_number(12), find_dataset("emnist_mnist"));
  EXPECT_EQ(find_dataset_of_word("EMNIST-mnist"), find_dataset("emnist_mnist"));
  EXPECT_EQ(find_dataset_of_number(13), find_dataset("cifar10"));
  EXPECT_EQ(find_dataset_of_word("CIFAR-10"), find_dataset("cifar10"));
}

TEST(Datasets, AreFoundByNameWordAndNumberAlike) {
  for (const DatasetRow& row : datasets()) {
    EXPECT_EQ(find_dataset(row.name), &row);
    EXPECT_EQ(find_dataset_of_word(row.word()), &row);
    EXPECT_EQ(find_dataset_of_number(row.number), &row);
    EXPECT_GT(row.number, net::kAnyData) << row.name;
    EXPECT_NE(row.name, "auto");
  }
  EXPECT_EQ(find_dataset("auto"), nullptr);
  EXPECT_EQ(find_dataset_of_word("mnist"), nullptr) << "that is its name";
  EXPECT_EQ(find_dataset_of_number(net::kAnyData), nullptr);
}

TEST(Datasets, AreEitherDownloadedOrBuiltIn) {
  for (const DatasetRow& row : datasets()) {
    EXPECT_NE(row.is_built_in(), row.mirrors != nullptr) << row.name;
  }
  EXPECT_EQ(usual_dataset().name, "mnist");
  EXPECT_EQ(built_in_dataset().name, "digits");
}

}  // namespace
}  // namespace disttf::roles
