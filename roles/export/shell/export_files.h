// Files of a model in a directory that appears as a whole: a reader finds all of it or nothing,
// also after a power cut.
#pragma once

#include <filesystem>
#include <string>

#include "data/file_system.h"
#include "roles/export/core/weights_files.h"

namespace disttf::roles {

// Written beside its final name as "NAME.disttf-MARK", synced, renamed. With `replaces` what is
// there already makes room: for a moment, between two renamings, the name is nobody's. Throws
// std::system_error with a sentence that names a path; then what was there is there again.
void write_directory(data::FileSystem& files, const std::filesystem::path& directory,
                     const DirectoryFiles& contents, const std::string& mark, bool replaces);

}  // namespace disttf::roles
