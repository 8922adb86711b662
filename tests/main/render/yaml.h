// YAML as the engines read it, for tests: yaml-cpp's parser, and the types that YAML 1.2 gives to
// scalars without quotes.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace disttf::render {

// The documents of the text. Throws when it is not YAML, and std::runtime_error when a scalar
// without quotes is one that YAML 1.1 and 1.2 read differently ("yes", "0o7", "1:30").
[[nodiscard]] std::vector<nlohmann::json> parse_yaml(const std::string& text);

}  // namespace disttf::render
