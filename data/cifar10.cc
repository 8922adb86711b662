#include "data/cifar10.h"

#include <array>
#include <string_view>

namespace disttf::data {
namespace {

// Size and SHA-256 as TensorFlow Datasets lists them (url_checksums/cifar10.txt).
constexpr Archive kCifar10Archive{
    .name = "cifar-10-binary.tar.gz",
    .kind = ArchiveKind::kTarGz,
    .size_bytes = 170052171,
    .sha256 = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"};

constexpr std::array<std::string_view, 10> kCifar10Classes{
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};

// Extracted where `tar -x` puts it.
constexpr SetFile cifar10_file(std::string_view name, bool is_test) {
  return {.name = name,
          .kind = FileKind::kRecords,
          .is_test = is_test,
          .rows = 10000,
          .shape = {.height = 32, .width = 32, .channels = 3},
          .archive = &kCifar10Archive,
          .member = name};
}

constexpr std::array kCifar10Files{cifar10_file("cifar-10-batches-bin/data_batch_1.bin", false),
                                   cifar10_file("cifar-10-batches-bin/data_batch_2.bin", false),
                                   cifar10_file("cifar-10-batches-bin/data_batch_3.bin", false),
                                   cifar10_file("cifar-10-batches-bin/data_batch_4.bin", false),
                                   cifar10_file("cifar-10-batches-bin/data_batch_5.bin", false),
                                   cifar10_file("cifar-10-batches-bin/test_batch.bin", true)};

constexpr FileSet kCifar10{
    .name = "CIFAR-10", .checksum = {}, .files = kCifar10Files, .class_names = kCifar10Classes};

}  // namespace

const FileSet& cifar10() noexcept { return kCifar10; }

}  // namespace disttf::data
