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

// `part`: where in the schema file the schema is, as a JSON pointer; "" is all of it.
[[nodiscard]] testing::AssertionResult fits_schema(const nlohmann::json& value,
                                                   const std::string& schema_file,
                                                   const std::string& part = "");

}  // namespace disttf::render
