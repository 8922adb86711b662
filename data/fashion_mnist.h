// Fashion-MNIST: ten kinds of clothes instead of digits, in MNIST's format and with MNIST's file
// names.
#pragma once

#include "data/file_set.h"

namespace disttf::data {

// Returns the file set. The checksums are those of the files that Zalando Research published.
[[nodiscard]] const FileSet& fashion_mnist() noexcept;

}  // namespace disttf::data
