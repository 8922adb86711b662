#include "data/kmnist.h"

#include <array>
#include <string_view>

namespace disttf::data {
namespace {

constexpr std::array<std::string_view, 10> kKmnistClasses{"o",  "ki", "su", "tsu", "na",
                                                          "ha", "ma", "ya", "re",  "wo"};

// The names are those of MNIST's files, so each of these sets needs a folder of its own.
constexpr std::array kKmnistFiles{
    SetFile{.name = "train-images-idx3-ubyte",
            .kind = FileKind::kImages,
            .rows = 60000,
            .gz_bytes = 18165135,
            .gz_sha256 = "51467d22d8cc72929e2a028a0428f2086b092bb31cfb79c69cc0a90ce135fde4"},
    SetFile{.name = "train-labels-idx1-ubyte",
            .kind = FileKind::kLabels,
            .rows = 60000,
            .gz_bytes = 29497,
            .gz_sha256 = "e38f9ebcd0f3ebcdec7fc8eabdcdaef93bb0df8ea12bee65224341c8183d8e17"},
    SetFile{.name = "t10k-images-idx3-ubyte",
            .kind = FileKind::kImages,
            .is_test = true,
            .rows = 10000,
            .gz_bytes = 3041136,
            .gz_sha256 = "edd7a857845ad6bb1d0ba43fe7e794d164fe2dce499a1694695a792adfac43c5"},
    SetFile{.name = "t10k-labels-idx1-ubyte",
            .kind = FileKind::kLabels,
            .is_test = true,
            .rows = 10000,
            .gz_bytes = 5120,
            .gz_sha256 = "20bb9a0ef54c7db3efc55a92eef5582c109615df22683c380526788f98e42a1c"}};

constexpr FileSet kKmnist{
    .name = "KMNIST",
    .checksum = {},
    .files = kKmnistFiles,
    .class_names = kKmnistClasses,
};

}  // namespace

const FileSet& kmnist() noexcept { return kKmnist; }

}  // namespace disttf::data
