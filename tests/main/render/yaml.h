// Reads YAML like the engines, for tests: yaml-cpp's parser, and YAML 1.2's types of unquoted
// scalars.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace disttf::render {

// Returns the documents of the text. Throws if it is not YAML; throws std::runtime_error for an
// unquoted scalar that YAML 1.1 and 1.2 read differently ("yes", "0o7", "1:30").
[[nodiscard]] std::vector<nlohmann::json> parse_yaml(const std::string& text);

// Validates rendered documents against the engines' own JSON schemas with an independent validator:
// Python's jsonschema, if it is installed.

// Returns whether the validator is installed; otherwise says why not.
[[nodiscard]] bool has_schema_validator();
inline constexpr const char* kNoValidator =
    "no python3 here has jsonschema (make setup installs python3-jsonschema)";

[[nodiscard]] testing::AssertionResult fits(const nlohmann::json& value,
                                            const nlohmann::json& schema);
// `part`: the location of the schema in the schema file, as a JSON pointer; "" is the whole file.
[[nodiscard]] testing::AssertionResult fits_schema(const nlohmann::json& value,
                                                   const std::string& schema_file,
                                                   const std::string& part = "");

// Returns the schema, with all nested schemas, changed so that unknown fields are errors, as in an
// API server.
[[nodiscard]] nlohmann::json without_unknown_fields(nlohmann::json schema);

}  // namespace disttf::render
