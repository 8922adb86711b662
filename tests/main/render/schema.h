// What was rendered against the engines' own JSON schemas, by a validator that is not ours:
// Python's jsonschema, where it is installed.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace disttf::render {

// Whether the validator is there; else why not.
[[nodiscard]] bool has_schema_validator();
inline constexpr const char* kNoValidator =
    "no python3 here has jsonschema (make setup installs python3-jsonschema)";

[[nodiscard]] testing::AssertionResult fits(const nlohmann::json& value,
                                            const nlohmann::json& schema);
// `part`: where in the schema file the schema is, as a JSON pointer; "" is all of it.
[[nodiscard]] testing::AssertionResult fits_schema(const nlohmann::json& value,
                                                   const std::string& schema_file,
                                                   const std::string& part = "");

// The schema, and what it is made of, without fields that it does not name, as an API server has
// it.
[[nodiscard]] nlohmann::json without_unknown_fields(nlohmann::json schema);

}  // namespace disttf::render
