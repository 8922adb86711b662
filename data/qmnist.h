// QMNIST: MNIST's digits cut out of NIST's forms once more, and all 60 000 test images that there
// were: MNIST has the first 10 000 of them. Of its label tables the class alone is used here.
#pragma once

#include "data/file_set.h"

namespace disttf::data {

// Of the images the .gz alone are pinned (file_set.h), by the SHA-256 that torchvision lists; of
// the labels also what is in them.
[[nodiscard]] const FileSet& qmnist() noexcept;

}  // namespace disttf::data
