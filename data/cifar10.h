// CIFAR-10: small colour photographs of ten kinds of objects.
#pragma once

#include "data/file_set.h"

namespace disttf::data {

// The file set of CIFAR-10's binary version. Only the archive is pinned (file_set.h), because no
// published SHA-256 of the files inside is known, only MD5.
[[nodiscard]] const FileSet& cifar10() noexcept;

}  // namespace disttf::data
