// Values in untrusted JSON, beside data/json/json_members.h: a missing one, or one of another type,
// reads as nullopt or empty. Nothing throws.
//
// Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace disttf::roles {

// A finite number with an absolute value of at most kMostShown (axis.h).
[[nodiscard]] std::optional<double> number_of(const nlohmann::ordered_json& json);
[[nodiscard]] std::optional<double> number_of(const nlohmann::ordered_json& json,
                                              std::string_view name);
[[nodiscard]] std::optional<double> number_at(const nlohmann::ordered_json& list, std::size_t at);
// A whole number of at least 0.
[[nodiscard]] std::optional<std::uint64_t> count_of(const nlohmann::ordered_json& json,
                                                    std::string_view name);
// On one line, without control characters; empty if there is no text.
[[nodiscard]] std::string text_of_field(const nlohmann::ordered_json& json, std::string_view name);

}  // namespace disttf::roles
