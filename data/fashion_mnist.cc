#include "data/fashion_mnist.h"

#include <array>
#include <string_view>

namespace disttf::data {
namespace {

constexpr std::array<std::string_view, 10> kFashionClasses{
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
    "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};

// The alternative .gz are those of Debian's package dataset-fashion-mnist 0.0~git20200523: the
// published contents without the name and the time in the gzip header.
constexpr std::array kFashionMnistFiles{
    SetFile{.name = "train-images-idx3-ubyte",
            .kind = FileKind::kImages,
            .rows = 60000,
            .sha256 = "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
            .gz_bytes = 26421880,
            .gz_sha256 = "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            .other_gz_bytes = 26421856,
            .other_gz_sha256 = "b0564c3eedabfbf835052cff8503ea422014ce006caf5b757f851416ee8300c7"},
    SetFile{.name = "train-labels-idx1-ubyte",
            .kind = FileKind::kLabels,
            .rows = 60000,
            .sha256 = "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
            .gz_bytes = 29515,
            .gz_sha256 = "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
            .other_gz_bytes = 29491,
            .other_gz_sha256 = "0ae29f65d86684f32d1b9c85147786c547b9c6aebcaf235f0400a0cce308b056"},
    SetFile{.name = "t10k-images-idx3-ubyte",
            .kind = FileKind::kImages,
            .is_test = true,
            .rows = 10000,
            .sha256 = "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
            .gz_bytes = 4422102,
            .gz_sha256 = "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
            .other_gz_bytes = 4422079,
            .other_gz_sha256 = "cc1d090a38ace84dfa1aa66e3ada7c336ef481a96936906477e6dd344da56eaa"},
    SetFile{.name = "t10k-labels-idx1-ubyte",
            .kind = FileKind::kLabels,
            .is_test = true,
            .rows = 10000,
            .sha256 = "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
            .gz_bytes = 5148,
            .gz_sha256 = "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
            .other_gz_bytes = 5125,
            .other_gz_sha256 = "8d3605d196f4be44669e46906da9733c8131fef761fdbfec72c424d5222f1a05"}};

constexpr FileSet kFashionMnist{
    .name = "Fashion-MNIST",
    .checksum = "14410854cf7a289477dcfc7df3f8ec24741e281cdcc425ede0d9a748ca630214",
    .files = kFashionMnistFiles,
    .class_names = kFashionClasses,
};

}  // namespace

const FileSet& fashion_mnist() noexcept { return kFashionMnist; }

}  // namespace disttf::data
