// KMNIST: ten cursive Japanese characters instead of digits, in MNIST's format and with MNIST's
// file names.
#pragma once

#include "data/file_set.h"

namespace disttf::data {

// Returns the file set. Only the .gz are pinned (file_set.h), by the sizes and SHA-256 that
// TensorFlow Datasets lists.
[[nodiscard]] const FileSet& kmnist() noexcept;

}  // namespace disttf::data
