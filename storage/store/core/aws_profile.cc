#include "storage/store/core/aws_profile.h"

#include <algorithm>

#include "net/wire/text.h"

namespace disttf::roles {

ProfileSettings profile_settings(std::string_view text, std::string_view profile, bool in_config) {
  ProfileSettings settings;
  bool is_ours = false;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::string_view bare = net::trim(line);
    if (bare.empty() || bare.front() == '#' || bare.front() == ';') continue;
    if (bare.front() == '[') {
      std::string_view name = net::trim(bare.substr(1, bare.find(']') - 1));
      if (in_config && name != "default") {
        static constexpr std::string_view kWord = "profile";
        // Sections of config without the word are of another kind, "[sso-session x]".
        name = name.starts_with(kWord) ? net::trim(name.substr(kWord.size())) : std::string_view{};
      }
      // A profile may occur in several sections, whose settings add up; the last value counts.
      is_ours = !name.empty() && name == profile;
      continue;
    }
    const std::size_t equals = bare.find('=');
    // Indented lines belong to the setting above them, such as `s3 =`.
    const bool is_inner = line.front() == ' ' || line.front() == '\t';
    if (!is_ours || is_inner || equals == std::string_view::npos) continue;
    settings.insert_or_assign(net::to_lower(net::trim(bare.substr(0, equals))),
                              std::string(net::trim(bare.substr(equals + 1))));
  }
  return settings;
}

}  // namespace disttf::roles
