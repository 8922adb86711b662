// ~/.aws/config and ~/.aws/credentials, as AWS' own tools read them.
//
// Pure functions; callable from any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace disttf::roles {

// The settings of a profile, by their names in small letters. Lines that are none are passed over,
// and so are those that are further in (settings within a setting).
using ProfileSettings = std::map<std::string, std::string, std::less<>>;

// `in_config`: sections are "[profile NAME]" there, but "[default]"; else "[NAME]".
[[nodiscard]] ProfileSettings profile_settings(std::string_view text, std::string_view profile,
                                               bool in_config);

}  // namespace disttf::roles
