// Trees of maps, lists and scalars, and their text as JSON and YAML.
//
// Maps keep the order of their keys. A key "#x" is a comment on the following key x: YAML shows it
// above that key, JSON omits it. "\n" breaks long comments into lines.
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

// One document in block style, with a newline at the end. YAML 1.1 and 1.2 read the same values
// from it: text that either would read as another type is quoted.
[[nodiscard]] std::string to_yaml_text(const Json& value);

[[nodiscard]] Json without_comments(const Json& value);

// "# a\n# b\n" of "a\nb".
[[nodiscard]] std::string comment_lines(std::string_view text, std::string_view mark = "# ");

[[nodiscard]] Json json_list(const std::vector<std::string>& entries);

}  // namespace disttf::render
