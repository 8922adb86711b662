// Fashion-MNIST: ten kinds of clothes in the place of digits, in MNIST's format and under the names
// of its files.
#pragma once

#include "data/file_set.h"

namespace disttf::data {

// The checksums are those of the files that Zalando Research published.
[[nodiscard]] const FileSet& fashion_mnist() noexcept;

}  // namespace disttf::data
