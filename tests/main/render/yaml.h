// Reads YAML like the engines, for tests: yaml-cpp's parser, and YAML 1.2's types of unquoted
// scalars.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace disttf::render {

// Returns the documents of the text. Throws if it is not YAML; throws std::runtime_error for an
// unquoted scalar that YAML 1.1 and 1.2 read differently ("yes", "0o7", "1:30").
[[nodiscard]] std::vector<nlohmann::json> parse_yaml(const std::string& text);

}  // namespace disttf::render
