// QMNIST: MNIST's digits, extracted again from NIST's forms, with all 60 000 test images, of which
// MNIST has the first 10 000. Only the class is used from its label tables.
#pragma once

#include "data/file_set.h"

namespace disttf::data {

// Returns the file set. For the images only the .gz are pinned (file_set.h), by the SHA-256 that
// torchvision lists; for the labels also the extracted contents.
[[nodiscard]] const FileSet& qmnist() noexcept;

}  // namespace disttf::data
