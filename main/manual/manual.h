// The man pages: disttf(1), and one for each command, disttf-launch(1) and its like.
//
// They are made of the same rows as --help and docs/flags.md (main/commands/registry.h). A separate
// program writes the pages when packages are built; disttf does not contain them.
//
// Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace disttf {

struct ManualPage {
  std::string name;  // the file's name: "disttf-launch.1"
  std::string text;  // for man(7)
};

// `version`: "0.1.0"; `date`: "2026-11-25".
[[nodiscard]] std::vector<ManualPage> manual_pages(std::string_view version, std::string_view date);

// Text for man(7): escapes backslashes, hyphens and quotes, and lines that would begin a request.
[[nodiscard]] std::string manual_text(std::string_view text);

}  // namespace disttf
