// Problems in a user's data, as sentences: `data inspect` prints them, and a training run logs
// them.
//
// Pure functions; callable from any thread.
#pragma once

#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/own/cache.h"

namespace disttf::data {

// Returns the findings of converted data. CacheIndex::warnings come first.
[[nodiscard]] std::vector<std::string> findings_of(const CacheIndex& index);
// Returns the findings of images that are read directly.
[[nodiscard]] std::vector<std::string> findings_of(const Dataset& dataset);
// Returns the findings about the pixels only.
[[nodiscard]] std::vector<std::string> findings_of_pixels(const Dataset& dataset);

}  // namespace disttf::data
