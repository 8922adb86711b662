// How deep somebody's JSON is nested, before it is parsed: a parsed value is written out and
// compared by functions that call themselves for each level, as deep as whoever wrote it likes.
//
// A pure function; callable from any thread.
#pragma once

#include <cstddef>
#include <string_view>

namespace disttf::data {

// The most brackets that are open at once. What is no JSON gets some number.
[[nodiscard]] std::size_t json_depth(std::string_view json) noexcept;

}  // namespace disttf::data
