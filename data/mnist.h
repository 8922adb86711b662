// MNIST: the four files, with their sizes and SHA-256.
//
//   for (const SetFile& file : mnist().files) check_file(directory, file);   // what is missing
//   Dataset dataset = open_file_set(directory, mnist(), options);
#pragma once

#include "data/file_set.h"

namespace disttf::data {

// Returns the file set. The checksums are those of the files that Y. LeCun, C. Cortes and C. Burges
// published, which every mirror serves.
[[nodiscard]] const FileSet& mnist() noexcept;

}  // namespace disttf::data
