// The man pages: disttf(1), and one for each command, disttf-launch(1) and its like.
//
// They are made of the same tables as --help and docs/flags.md: commands() and the options that
// make_app() gives each of them. What no table has (what a command leaves behind, what it ends
// with, examples) stands in command_texts.h. A program of its own writes them when packages are
// made; none of it is in disttf.
//
// Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace disttf {

struct ManualPage {
  std::string name;  // of the file: "disttf-launch.1"
  std::string text;  // for man(7)
};

// `version`: "0.1.0"; `date`: "2026-11-25".
[[nodiscard]] std::vector<ManualPage> manual_pages(std::string_view version, std::string_view date);

// Text as man(7) takes it: backslashes and hyphens escaped, no line that begins like a request.
[[nodiscard]] std::string manual_text(std::string_view text);

}  // namespace disttf
