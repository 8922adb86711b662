// MNIST: which four files it is, by size and SHA-256.
//
//   for (const SetFile& file : mnist().files) check_file(directory, file);   // what is missing
//   Dataset dataset = open_file_set(directory, mnist(), options);
#pragma once

#include "data/file_set.h"

namespace disttf::data {

// The checksums are those of the files that Y. LeCun, C. Cortes and C. Burges published, as every
// mirror carries them.
[[nodiscard]] const FileSet& mnist() noexcept;

}  // namespace disttf::data
