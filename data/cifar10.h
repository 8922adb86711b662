// CIFAR-10: small photographs of ten kinds of things, in colour.
#pragma once

#include "data/file_set.h"

namespace disttf::data {

// Its binary version, of which the archive alone is pinned (file_set.h): of the files in it lists
// of MD5 were found, and none of SHA-256.
[[nodiscard]] const FileSet& cifar10() noexcept;

}  // namespace disttf::data
