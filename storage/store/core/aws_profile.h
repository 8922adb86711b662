// Parses ~/.aws/config and ~/.aws/credentials as AWS' own tools do.
//
// Pure functions; callable from any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace disttf::roles {

// The settings of a profile, by their names in lower case. Ignores lines that are not settings, and
// indented ones (settings within a setting).
using ProfileSettings = std::map<std::string, std::string, std::less<>>;

// `in_config`: sections are named "[profile NAME]", or "[default]"; else "[NAME]".
[[nodiscard]] ProfileSettings profile_settings(std::string_view text, std::string_view profile,
                                               bool in_config);

}  // namespace disttf::roles
