// Helpers for JSON answers of stores and token servers. Missing members, and those of another type,
// read as empty; the callers report which field is missing.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "data/json/json_text.h"

namespace disttf::roles {

// Discarded, which is not an object, if the text is not JSON or is nested deeper than `max_depth`.
inline nlohmann::json json_answer(std::string_view text, std::size_t max_depth) {
  return data::parse_json(text, max_depth);
}

// An object's member; null if there is none, or `object` is not an object.
inline const nlohmann::json& member_of(const nlohmann::json& object, const char* name) {
  static const nlohmann::json kNothing;
  if (!object.is_object()) return kNothing;
  const auto found = object.find(name);
  return found == object.end() ? kNothing : *found;
}

// Empty if there is no such member, or it is not a text.
inline std::string member_text(const nlohmann::json& object, const char* name) {
  const nlohmann::json& member = member_of(object, name);
  return member.is_string() ? member.get<std::string>() : "";
}

}  // namespace disttf::roles
