// KMNIST: ten cursive Japanese characters in the place of digits, in MNIST's format and under the
// names of its files.
#pragma once

#include "data/file_set.h"

namespace disttf::data {

// The .gz alone are pinned (file_set.h): by sizes and SHA-256 as TensorFlow Datasets lists them.
[[nodiscard]] const FileSet& kmnist() noexcept;

}  // namespace disttf::data
