// Data that lies in a store, brought to this machine: what trains reads it many times, and as
// files.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "data/own/own_data.h"
#include "roles/download/download.h"

namespace disttf::roles {

// The same, of a copy in `directory` where the path is a store's URL: made now, or what has changed
// since it was made. Throws Failure(kBadData) where it cannot be had.
[[nodiscard]] data::OwnDataOptions brought_here(const data::OwnDataOptions& own,
                                                const std::filesystem::path& directory);

// Copies those of the files that lie in `source`, a store's URL. Whether they are right is for the
// caller to look at. Throws the same.
void fetch_from_store(std::span<const RemoteFile> files, const std::string& source,
                      const std::filesystem::path& directory);

}  // namespace disttf::roles
