// Converts JSON to and from text for all modules except net/. nlohmann's parser and printer are
// templates that cost 1.5 seconds of compile time in each translation unit that calls them.
//
// The input is untrusted: it may not be JSON, or may be nested so deeply that recursive functions,
// such as printing and comparison, run out of stack. The output may contain untrusted bytes:
// invalid UTF-8 becomes U+FFFD, so a caller that needs those bytes must encode them first.
//
// Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <limits>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace disttf::data {

// Returns the largest number of brackets open at once. The result is unspecified if `text` is not
// JSON.
[[nodiscard]] std::size_t json_depth(std::string_view text) noexcept;

constexpr std::size_t kAnyJsonDepth = std::numeric_limits<std::size_t>::max();

// Returns the value of `text`. Returns a discarded value, which is neither an object nor an array
// nor any other kind, if `text` is not JSON or is nested deeper than `most_depth`. Set `most_depth`
// for untrusted input.
[[nodiscard]] nlohmann::json parse_json(std::string_view text,
                                        std::size_t most_depth = kAnyJsonDepth);
// The same, with objects that keep the order of their members.
[[nodiscard]] nlohmann::ordered_json parse_ordered_json(std::string_view text,
                                                        std::size_t most_depth = kAnyJsonDepth);

struct JsonStyle {
  int indent = -1;          // spaces per level; -1: everything on one line
  bool only_ascii = false;  // print other characters as \uXXXX
};

[[nodiscard]] std::string json_text(const nlohmann::json& value, JsonStyle style = {});
[[nodiscard]] std::string json_text(const nlohmann::ordered_json& value, JsonStyle style = {});

// Members of untrusted JSON: a missing one, and one of another type, reads as null or empty. The
// callers report which is missing.

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
