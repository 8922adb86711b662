// EMNIST: letters and digits from NIST's forms in MNIST's format, in six selections. All come in
// one archive.
#pragma once

#include "data/file_set.h"

namespace disttf::data {

// The file sets. Only the archive is pinned (file_set.h).
[[nodiscard]] const FileSet& emnist_byclass() noexcept;   // 62 classes, in their natural frequency
[[nodiscard]] const FileSet& emnist_bymerge() noexcept;   // 47: c C, o O and so on are one class
[[nodiscard]] const FileSet& emnist_balanced() noexcept;  // the same 47, balanced
[[nodiscard]] const FileSet& emnist_letters() noexcept;   // 26, lower and upper case merged
[[nodiscard]] const FileSet& emnist_digits() noexcept;
[[nodiscard]] const FileSet& emnist_mnist() noexcept;  // as many digits as MNIST

}  // namespace disttf::data
