// The settings of a run (roles/run/setting.h) as flags: each row of the table is an option, and
// nothing here knows any of them by name.
#pragma once

#include <CLI/App.hpp>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "roles/run/setting.h"

namespace disttf {

// What was written of a run's settings, before any of it is checked against the rest.
struct WrittenSettings {
  roles::RunConfig run;  // what was not written has its default
  // The settings that were given a value, switches excepted: "auto" is none.
  std::set<std::string, std::less<>> given;

  [[nodiscard]] bool has(std::string_view name) const { return given.contains(name); }
};

// The group's settings as options of `app`, which fill `written`; that must outlive it. `title`: of
// the group in the help.
void add_setting_flags(CLI::App& app, roles::SettingGroup group, const std::string& title,
                       WrittenSettings& written);

}  // namespace disttf
