// The JSON that stores and those who give tokens answer with. What is not there, or is not what was
// expected, reads as nothing: each caller then says which field it missed.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "data/json/json_text.h"

namespace disttf::roles {

// Discarded, which is no object: it is no JSON, or nested deeper than `max_depth`.
inline nlohmann::json json_answer(std::string_view text, std::size_t max_depth) {
  return data::parse_json(text, max_depth);
}

// An object's member; null: it has none, or is no object.
inline const nlohmann::json& member_of(const nlohmann::json& object, const char* name) {
  static const nlohmann::json kNothing;
  if (!object.is_object()) return kNothing;
  const auto found = object.find(name);
  return found == object.end() ? kNothing : *found;
}

// Empty: there is no such member, or it is no text.
inline std::string member_text(const nlohmann::json& object, const char* name) {
  const nlohmann::json& member = member_of(object, name);
  return member.is_string() ? member.get<std::string>() : "";
}

}  // namespace disttf::roles
