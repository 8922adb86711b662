// EMNIST: the letters and digits of NIST's forms, in MNIST's format, in six ways of choosing among
// them. All come in one archive.
#pragma once

#include "data/file_set.h"

namespace disttf::data {

// Of them the archive alone is pinned (file_set.h).
[[nodiscard]] const FileSet&
emnist_byclass() noexcept;  // 62 classes, as often as they were written
[[nodiscard]] const FileSet& emnist_bymerge() noexcept;   // 47: c C, o O and so on are one
[[nodiscard]] const FileSet& emnist_balanced() noexcept;  // the same, as many of each
[[nodiscard]] const FileSet& emnist_letters() noexcept;   // 26, of small and capital ones
[[nodiscard]] const FileSet& emnist_digits() noexcept;
[[nodiscard]] const FileSet& emnist_mnist() noexcept;  // as many digits as MNIST has

}  // namespace disttf::data
