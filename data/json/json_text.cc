#include "data/json/json_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace disttf::data {
namespace {

template <typename Json>
Json parsed(std::string_view text, std::size_t most_depth) {
  // Before the parser, which would build the whole tree of a deeply nested text first.
  if (most_depth != kAnyJsonDepth && json_depth(text) > most_depth) {
    return Json::value_t::discarded;
  }
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

template <typename Json>
std::string written(const Json& value, JsonStyle style) {
  // Names of files may be invalid UTF-8, for which dump() would throw by default.
  return value.dump(style.indent, ' ', style.only_ascii, Json::error_handler_t::replace);
}

}  // namespace

std::size_t json_depth(std::string_view text) noexcept {
  std::size_t deepest = 0;
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;  // an escaped character does not end the string
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
  return deepest;
}

nlohmann::json parse_json(std::string_view text, std::size_t most_depth) {
  return parsed<nlohmann::json>(text, most_depth);
}

nlohmann::ordered_json parse_ordered_json(std::string_view text, std::size_t most_depth) {
  return parsed<nlohmann::ordered_json>(text, most_depth);
}

std::string json_text(const nlohmann::json& value, JsonStyle style) {
  return written(value, style);
}

std::string json_text(const nlohmann::ordered_json& value, JsonStyle style) {
  return written(value, style);
}

}  // namespace disttf::data
