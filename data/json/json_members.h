// Members of untrusted JSON: a missing one, and one of another type, reads as null or empty. The
// callers report which is missing.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace disttf::data {

// An object's member; null if there is none, or `object` is not an object.
template <typename Json>
[[nodiscard]] const Json& member_of(const Json& object, std::string_view name) {
  static const Json kNothing;
  if (!object.is_object()) return kNothing;
  const auto found = object.find(name);
  return found == object.end() ? kNothing : *found;
}

// Empty if there is no such member, or it is not a text.
template <typename Json>
[[nodiscard]] std::string member_text(const Json& object, std::string_view name) {
  const Json& member = member_of(object, name);
  return member.is_string() ? member.template get<std::string>() : std::string();
}

}  // namespace disttf::data
