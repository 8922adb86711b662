// Copies data from a store to this machine: training reads it many times, and as files.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "data/own/own_data.h"
#include "storage/download/download.h"

namespace disttf::roles {

// Returns the options with the path of a local copy in `directory` where `own` names a store's URL.
// Copies what is missing or has changed. Throws Failure(kBadData) if the copy fails.
[[nodiscard]] data::OwnDataOptions brought_here(const data::OwnDataOptions& own,
                                                const std::filesystem::path& directory);

// Copies those of the files that lie in `source`, a store's URL. Does not verify their contents.
// Throws Failure(kBadData).
void fetch_from_store(std::span<const RemoteFile> files, const std::string& source,
                      const std::filesystem::path& directory);

}  // namespace disttf::roles
