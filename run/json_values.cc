#include "run/json_values.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <nlohmann/json.hpp>

#include "data/json/json_text.h"
#include "run/setting.h"
#include "text/shortest_number.h"

namespace disttf::roles {

using Json = nlohmann::json;

std::string shown(const Json& value) {
  constexpr std::size_t kMaxShown = 80;
  const auto is_object = [](const Json& part) { return part.is_object(); };
  if (value.is_array() && !value.empty() && std::ranges::all_of(value, is_object)) {
    return "a list of " + std::to_string(value.size()) + " layers";
  }
  const auto is_structured = [](const Json& part) { return part.is_structured(); };
  if (value.is_object() || std::any_of(value.begin(), value.end(), is_structured)) {
    return "a nested value";  // formatting it recurses as deep as the peer that sent it chooses
  }
  std::string text = data::json_text(value, {.only_ascii = true});
  // The text is ASCII, so no character is cut in two.
  if (text.size() > kMaxShown) {
    text = text.substr(0, kMaxShown) + "...";
  }
  return text;
}

double short_number(float value) {
  // Widening the float itself would publish 0.10000000149011612 for 0.1.
  const std::string text = shortest_number(value);
  double parsed = 0;
  std::from_chars(text.data(), text.data() + text.size(), parsed);
  return parsed;
}

}  // namespace disttf::roles
