// Writes a model's files into a directory atomically: a reader finds all of them or none, also
// after a power cut.
#pragma once

#include <filesystem>
#include <string>

#include "data/file_system.h"
#include "model/export/weights_files.h"

namespace disttf::roles {

// Writes the files into "NAME.disttf-MARK" beside the final name, syncs, renames. With `replaces`
// the existing directory is renamed first: for a moment the name does not exist. Throws
// std::system_error with a sentence that names a path, after restoring the existing directory.
void write_directory(data::FileSystem& files, const std::filesystem::path& directory,
                     const DirectoryFiles& contents, const std::string& mark, bool replaces);

}  // namespace disttf::roles
