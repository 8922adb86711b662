// JSON to and from text, for all but net/: nlohmann's parser and printer are templates, which take
// the compiler a second and a half in each unit of the build that calls them.
//
// What is read is somebody's: it may be no JSON, or nested so deep that what calls itself for each
// level, as writing and comparing values do, runs out of stack. What is written may hold somebody's
// bytes: those that are no UTF-8 become U+FFFD, so whoever needs them back must see to it before.
//
// Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace disttf::data {

// The most brackets that are open at once. What is no JSON gets some number.
[[nodiscard]] std::size_t json_depth(std::string_view text) noexcept;

constexpr std::size_t kAnyJsonDepth = std::numeric_limits<std::size_t>::max();

// The value that `text` is. Discarded, which is no object, no array and no value of any other kind:
// it is no JSON, or deeper than `most_depth`, which what comes from strangers has to be held to.
[[nodiscard]] nlohmann::json parse_json(std::string_view text,
                                        std::size_t most_depth = kAnyJsonDepth);
// The same, whose objects keep the order of their members.
[[nodiscard]] nlohmann::ordered_json parse_ordered_json(std::string_view text,
                                                        std::size_t most_depth = kAnyJsonDepth);

struct JsonStyle {
  int indent = -1;          // spaces a level; -1: all of it in one line
  bool only_ascii = false;  // other characters as \uXXXX
};

[[nodiscard]] std::string json_text(const nlohmann::json& value, JsonStyle style = {});
[[nodiscard]] std::string json_text(const nlohmann::ordered_json& value, JsonStyle style = {});

}  // namespace disttf::data
