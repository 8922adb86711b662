// The settings of a run (run/setting.h) as flags: each row of the table is an option; no
// setting is named here.
#pragma once

#include <CLI/App.hpp>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "run/setting.h"

namespace disttf {

// The settings as written, before they are checked against one another.
struct WrittenSettings {
  roles::RunConfig run;  // with defaults for settings that were not given
  // The settings with a given value, except booleans; "auto" does not count.
  std::set<std::string, std::less<>> given;

  [[nodiscard]] bool has(std::string_view name) const { return given.contains(name); }
};

// Adds the group's settings as options to `app`. They fill `written`, which must outlive `app`.
// `title` is the group's heading in the help.
void add_setting_flags(CLI::App& app, roles::SettingGroup group, const std::string& title,
                       WrittenSettings& written);

}  // namespace disttf
