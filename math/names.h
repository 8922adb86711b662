// Names of enumerations whose values count from 0: names[i] is the name of value i.
//
// Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace disttf::math {

// Returns "unknown" for a value without a name.
template <typename Enum>
[[nodiscard]] constexpr std::string_view name_of(std::span<const std::string_view> names,
                                                 Enum value) noexcept {
  const auto index = static_cast<std::size_t>(value);
  return index < names.size() ? names[index] : "unknown";
}

template <typename Enum>
[[nodiscard]] constexpr std::optional<Enum> value_of(std::span<const std::string_view> names,
                                                     std::string_view name) noexcept {
  for (std::size_t index = 0; index < names.size(); ++index) {
    if (names[index] == name) {
      return static_cast<Enum>(index);
    }
  }
  return std::nullopt;
}

}  // namespace disttf::math
