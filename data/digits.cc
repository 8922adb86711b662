#include "data/digits.h"

#include <array>
#include <cstddef>
#include <utility>

#include "data/digits_draw.h"
#include "data/idx.h"

namespace disttf::data {
namespace {

// The pinned checksums depend on this seed.
constexpr std::uint64_t kSeed = 1;
// Streams of random_bits: images and labels of the two parts must not use the same numbers.
constexpr std::uint64_t kImageStream = 0;  // + 1 for the test part
constexpr std::uint64_t kLabelStream = 2;  // + 1 for the test part

constexpr std::array kDigitsFiles{
    SetFile{.name = "digits-train-images-idx3-ubyte",
            .kind = FileKind::kImages,
            .rows = 60000,
            .sha256 = "ada65165ae88050f68fdcb5ae1df3256016f4b727507141c2529051c6e28ebc5"},
    SetFile{.name = "digits-train-labels-idx1-ubyte",
            .kind = FileKind::kLabels,
            .rows = 60000,
            .sha256 = "182b51038b827b1a3488627d1d03bbe6a404fe84d3af4eced2be5f72958843da"},
    SetFile{.name = "digits-t10k-images-idx3-ubyte",
            .kind = FileKind::kImages,
            .is_test = true,
            .rows = 10000,
            .sha256 = "e4dfd77fb962b301575dd6ecfaeffe46960ec0d0f3ab7abe60fcf70ebeafc785"},
    SetFile{.name = "digits-t10k-labels-idx1-ubyte",
            .kind = FileKind::kLabels,
            .is_test = true,
            .rows = 10000,
            .sha256 = "578c3756942649d229613c931bd29976d6f973ac20304fa71b6975f69e5c33a3"}};

constexpr FileSet kDigits{
    .name = "Digits",
    .checksum = "465be317275830dad35cc132ee9578505926a1876e29ada689100219d3c8fbda",
    .files = kDigitsFiles,
};

struct Part {
  std::vector<std::uint8_t> images;  // IDX files, headers included
  std::vector<std::uint8_t> labels;
};

Part make_part(const DigitsRandomness& randomness, std::uint32_t rows, std::uint64_t part) {
  const auto images_start = images_header(rows, kDigits.shape());
  const auto labels_start = labels_header(rows);
  Part made;
  made.images.reserve(images_start.size() + rows * kDigitPixels);
  made.images.assign(images_start.begin(), images_start.end());
  // Allocated once: appending 47 MB in pieces would copy them several times.
  made.images.resize(images_start.size() + rows * kDigitPixels);
  made.labels.assign(labels_start.begin(), labels_start.end());
  // A random order with an equal number of each class.
  std::vector<std::uint32_t> order(rows);
  permute(order, kSeed, randomness.purpose, kLabelStream + part, randomness.random_bits);
  std::array<std::uint64_t, 64> bits{};  // of this row and the next ones, up to a multiple of 64
  for (std::uint32_t row = 0; row < rows; ++row) {
    const auto label = static_cast<std::uint8_t>(order[row] % kDigitClasses);
    made.labels.push_back(label);
    const std::span<std::uint8_t> pixels(
        made.images.data() + images_start.size() + row * kDigitPixels, kDigitPixels);
    // Seeds are drawn 64 at a time, which vector instructions compute much faster than single ones.
    if (row % bits.size() == 0) {
      randomness.random_bits(kSeed, randomness.purpose, kImageStream + part, row, bits);
    }
    draw_digit(label, bits[row % bits.size()], pixels.first<kDigitPixels>());
  }
  return made;
}

}  // namespace

const FileSet& digits() noexcept { return kDigits; }

std::array<std::vector<std::uint8_t>, 4> make_digits(const DigitsRandomness& randomness) {
  Part train = make_part(randomness, kDigits.files[0].rows, 0);
  Part test = make_part(randomness, kDigits.files[2].rows, 1);
  return {std::move(train.images), std::move(train.labels), std::move(test.images),
          std::move(test.labels)};
}

Dataset open_digits(const std::filesystem::path& directory, const DigitsRandomness& randomness,
                    const OpenOptions& options) {
  std::array<std::vector<std::uint8_t>, 4> made;
  const auto make = [&](const SetFile& file, const FileCheck&) {
    // The first missing file generates all four, because usually all of them are missing.
    if (made[0].empty()) made = make_digits(randomness);
    // A copy, because another missing file can follow.
    return made[static_cast<std::size_t>(&file - kDigits.files.data())];
  };
  return open_file_set(directory, kDigits, make, options);
}

}  // namespace disttf::data
