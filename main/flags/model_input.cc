#include "main/flags/model_input.h"

#include <CLI/CLI.hpp>
#include <array>
#include <charconv>
#include <stdexcept>
#include <string_view>

#include "main/flags/flag_group.h"
#include "net/wire/text.h"

namespace disttf {

math::Shape shape_from_text(const std::string& text) {
  std::array<std::size_t, 3> lengths = {1, 1, 1};
  std::size_t count = 0;
  std::string_view rest = text;
  for (bool is_good = true; is_good && count < lengths.size();) {
    const auto [stopped, error] =
        std::from_chars(rest.data(), rest.data() + rest.size(), lengths[count++]);
    rest.remove_prefix(static_cast<std::size_t>(stopped - rest.data()));
    if (error != std::errc()) {
      break;
    }
    if (rest.empty()) {
      // A single number is the length of a row of a table.
      return count == 1 ? math::Shape{.channels = lengths[0]}
                        : math::Shape{lengths[0], lengths[1], lengths[2]};
    }
    is_good = rest.front() == 'x';
    rest.remove_prefix(1);
  }
  throw std::invalid_argument("--input: " + net::quoted(text) +
                              " is not HEIGHTxWIDTHxCHANNELS, like 28x28x1");
}

void add_input_range_flag(CLI::App& app, std::string& value, const char* group) {
  FlagGroup add(app, group);
  add.choice(
      "--input_range", value, "RANGE", {"byte", "unit", "auto"},
      "range of pixel values: `byte`: 0 to 255, with a warning if they look different; "
      "`unit`: 0 to 1; `auto`: 0 to 1 if all values of a request look like it, else 0 to 255");
}

roles::InputRange input_range_from(const std::string& value) {
  // The check of the flag has accepted the value.
  return value == "unit"   ? roles::InputRange::kUnit
         : value == "auto" ? roles::InputRange::kAuto
                           : roles::InputRange::kByte;
}

}  // namespace disttf
