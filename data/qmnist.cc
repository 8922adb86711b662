#include "data/qmnist.h"

#include <array>

namespace disttf::data {
namespace {

// The class; then NIST's numbers for the place and the writer, and two columns that are 0 here.
constexpr std::uint32_t kColumns = 8;

constexpr std::array kQmnistFiles{
    SetFile{.name = "qmnist-train-images-idx3-ubyte",
            .kind = FileKind::kImages,
            .rows = 60000,
            .gz_bytes = 9704059,
            .gz_sha256 = "9e26a7bf1683614e065d7b76460ccd52807165b3f22561fb782bd9f38c52b51d"},
    SetFile{.name = "qmnist-train-labels-idx2-int",
            .kind = FileKind::kLabelTable,
            .rows = 60000,
            .columns = kColumns,
            .sha256 = "bb1b6e1ec7b04fd5696f1ed50b5f58f8ef195118edd5c93c81783df9740b8ac5",
            .gz_bytes = 463024,
            .gz_sha256 = "2c05dc77f6b916b38e455e97ab129a42a444f3dbef09b278a366f82904e0dd9f"},
    SetFile{.name = "qmnist-test-images-idx3-ubyte",
            .kind = FileKind::kImages,
            .is_test = true,
            .rows = 60000,
            .gz_bytes = 9742279,
            .gz_sha256 = "43fc22bf7498b8fc98de98369d72f752d0deabc280a43a7bcc364ab19e57b375"},
    SetFile{.name = "qmnist-test-labels-idx2-int",
            .kind = FileKind::kLabelTable,
            .is_test = true,
            .rows = 60000,
            .columns = kColumns,
            .sha256 = "92d0ccb8c25f9c6534270fb4be7e1d24a1c6d315edfc8a638bfbd31c70f362dd",
            .gz_bytes = 526800,
            .gz_sha256 = "9fbcbe594c3766fdf4f0b15c5165dc0d1e57ac604e01422608bb72c906030d06"}};

constexpr FileSet kQmnist{
    .name = "QMNIST",
    .checksum = {},
    .files = kQmnistFiles,
};

}  // namespace

const FileSet& qmnist() noexcept { return kQmnist; }

}  // namespace disttf::data
