// The words of ls and cp, which name a place: a path, or a URL of a store.
#pragma once

#include <string>
#include <vector>

namespace disttf {

inline constexpr const char* kPlaceAbout =
    "A path, or a URL like s3://bucket/prefix or gs://bucket/prefix";

// Removes the word from the front of `arguments`. Throws std::invalid_argument if it is missing, or
// names an unknown store. `command` and `name` are for messages.
[[nodiscard]] std::string take_place(const char* command, const char* name,
                                     std::vector<std::string>& arguments);

}  // namespace disttf
