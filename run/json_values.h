// Single values of the published configuration. Pure functions; callable from any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace disttf::roles {

// Formats a value for a sentence: shortened for readability, control characters escaped.
[[nodiscard]] std::string shown(const nlohmann::json& value);

// Returns a float as the shortest decimal that reads back as the same float.
[[nodiscard]] double short_number(float value);

}  // namespace disttf::roles
