// What looks wrong with a user's data, as sentences: `data inspect` prints them, and a run that
// trains on the data logs them.
//
// Pure functions; callable from any thread.
#pragma once

#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/own/cache.h"

namespace disttf::data {

// Of what was converted. CacheIndex::warnings come first.
[[nodiscard]] std::vector<std::string> findings_of(const CacheIndex& index);
// Of images that are read as they are.
[[nodiscard]] std::vector<std::string> findings_of(const Dataset& dataset);
// Of the pixels of images alone.
[[nodiscard]] std::vector<std::string> findings_of_pixels(const Dataset& dataset);

}  // namespace disttf::data
