#include "data/mnist.h"

#include <array>

namespace disttf::data {
namespace {

constexpr std::array kMnistFiles{
    SetFile{.name = "train-images-idx3-ubyte",
            .kind = FileKind::kImages,
            .rows = 60000,
            .sha256 = "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            .gz_bytes = 9912422,
            .gz_sha256 = "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"},
    SetFile{.name = "train-labels-idx1-ubyte",
            .kind = FileKind::kLabels,
            .rows = 60000,
            .sha256 = "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            .gz_bytes = 28881,
            .gz_sha256 = "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"},
    SetFile{.name = "t10k-images-idx3-ubyte",
            .kind = FileKind::kImages,
            .is_test = true,
            .rows = 10000,
            .sha256 = "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            .gz_bytes = 1648877,
            .gz_sha256 = "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"},
    SetFile{.name = "t10k-labels-idx1-ubyte",
            .kind = FileKind::kLabels,
            .is_test = true,
            .rows = 10000,
            .sha256 = "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
            .gz_bytes = 4542,
            .gz_sha256 = "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"}};

constexpr FileSet kMnist{
    .name = "MNIST",
    .checksum = "b2d8f5bf39174ee5ffeefa97e42d673c35432b411bb5d1f74fbbeddae7f1690a",
    .files = kMnistFiles,
};

}  // namespace

const FileSet& mnist() noexcept { return kMnist; }

}  // namespace disttf::data
