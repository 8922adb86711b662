// Trees of maps, lists and scalars, and their two spellings: JSON and YAML.
//
// A map keeps its keys in the order in which they were added. A key "#x" is no key but a comment on
// the key x, which follows it: YAML shows it above that key, JSON has no comments and leaves it
// out. Long comments are broken into lines at "\n".
//
// Pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace disttf::render {

using Json = nlohmann::ordered_json;

// Indented by two spaces, with a newline at the end.
[[nodiscard]] std::string to_json_text(const Json& value);

// One document, block style, with a newline at the end. What it holds is read back by YAML 1.1 and
// 1.2 alike: text that either could take for something else than text is quoted.
[[nodiscard]] std::string to_yaml_text(const Json& value);

[[nodiscard]] Json without_comments(const Json& value);

// "# a\n# b\n" of "a\nb".
[[nodiscard]] std::string comment_lines(std::string_view text, std::string_view mark = "# ");

[[nodiscard]] Json json_list(const std::vector<std::string>& entries);

}  // namespace disttf::render
