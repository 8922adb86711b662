#include "storage/download/datasets.h"

#include <algorithm>
#include <array>

#include "data/cifar10.h"
#include "data/digits.h"
#include "data/emnist.h"
#include "data/fashion_mnist.h"
#include "data/kmnist.h"
#include "data/mnist.h"
#include "data/qmnist.h"
#include "math/random.h"
#include "storage/download/download.h"

namespace disttf::roles {
namespace {

data::Dataset make_digits(const std::filesystem::path& directory,
                          const data::OpenOptions& options) {
  const data::DigitsRandomness randomness{
      .purpose = static_cast<std::uint32_t>(math::Purpose::kDigits),
      .random_bits = &math::random_bits};
  return data::open_digits(directory, randomness, options);
}

// The second is the one that the authors name.
std::vector<std::string> fashion_mnist_mirrors() {
  return {"https://storage.googleapis.com/tensorflow/tf-keras-datasets/",
          "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"};
}

std::vector<std::string> kmnist_mirrors() {
  // The second is the same server without TLS. Each file is checked by its SHA-256 in any case.
  return {"https://codh.rois.ac.jp/kmnist/dataset/kmnist/",
          "http://codh.rois.ac.jp/kmnist/dataset/kmnist/"};
}

std::vector<std::string> qmnist_mirrors() {
  return {"https://raw.githubusercontent.com/facebookresearch/qmnist/master/"};
}

// The authors' page links to the first today, and linked to the other before.
std::vector<std::string> emnist_mirrors() {
  return {"https://biometrics.nist.gov/cs_links/EMNIST/",
          "https://www.itl.nist.gov/iaui/vip/cs_links/EMNIST/"};
}

std::vector<std::string> cifar10_mirrors() {
  return {"https://www.cs.toronto.edu/~kriz/",
          "https://storage.googleapis.com/s4tf-hosted-binaries/datasets/CIFAR10/"};
}

// The first one is usual_dataset(). Servers receive the number, so a release must not change one.
constexpr std::array kDatasets = {
    DatasetRow{.name = "mnist", .number = 2, .files = &data::mnist, .mirrors = &default_mirrors},
    DatasetRow{.name = "digits", .number = 3, .files = &data::digits, .make = &make_digits},
    DatasetRow{.name = "fashion_mnist",
               .number = 4,
               .files = &data::fashion_mnist,
               .shares_file_names = true,
               .package_directory = "/usr/share/datasets/fashion-mnist",
               .mirrors = &fashion_mnist_mirrors},
    DatasetRow{.name = "kmnist",
               .number = 5,
               .files = &data::kmnist,
               .shares_file_names = true,
               .mirrors = &kmnist_mirrors},
    DatasetRow{.name = "qmnist", .number = 6, .files = &data::qmnist, .mirrors = &qmnist_mirrors},
    DatasetRow{.name = "emnist_byclass",
               .number = 7,
               .files = &data::emnist_byclass,
               .mirrors = &emnist_mirrors},
    DatasetRow{.name = "emnist_bymerge",
               .number = 8,
               .files = &data::emnist_bymerge,
               .mirrors = &emnist_mirrors},
    DatasetRow{.name = "emnist_balanced",
               .number = 9,
               .files = &data::emnist_balanced,
               .mirrors = &emnist_mirrors},
    DatasetRow{.name = "emnist_letters",
               .number = 10,
               .files = &data::emnist_letters,
               .mirrors = &emnist_mirrors},
    DatasetRow{.name = "emnist_digits",
               .number = 11,
               .files = &data::emnist_digits,
               .mirrors = &emnist_mirrors},
    DatasetRow{.name = "emnist_mnist",
               .number = 12,
               .files = &data::emnist_mnist,
               .mirrors = &emnist_mirrors},
    DatasetRow{
        .name = "cifar10", .number = 13, .files = &data::cifar10, .mirrors = &cifar10_mirrors},
};

template <typename Matches>
const DatasetRow* find_row(Matches matches) {
  const auto* const found = std::ranges::find_if(kDatasets, matches);
  return found == kDatasets.end() ? nullptr : found;
}

}  // namespace

std::span<const DatasetRow> datasets() noexcept { return kDatasets; }

const DatasetRow& usual_dataset() noexcept { return kDatasets.front(); }

const DatasetRow& built_in_dataset() noexcept {
  return *find_row([](const DatasetRow& row) { return row.is_built_in(); });
}

const DatasetRow* find_dataset(std::string_view name) noexcept {
  return find_row([name](const DatasetRow& row) { return row.name == name; });
}

const DatasetRow* find_dataset_of_word(std::string_view word) noexcept {
  return find_row([word](const DatasetRow& row) { return row.word() == word; });
}

const DatasetRow* find_dataset_of_number(std::uint8_t number) noexcept {
  return find_row([number](const DatasetRow& row) { return row.number == number; });
}

}  // namespace disttf::roles
