#include "main/input_range_flag.h"

#include <CLI/CLI.hpp>

#include "main/flag_values.h"

namespace disttf {

void add_input_range_flag(CLI::App& app, std::string& value, const char* group) {
  app.add_option(
         "--input_range", value,
         "range of pixel values: `byte`: 0 to 255, with a warning if they look different; "
         "`unit`: 0 to 1; `auto`: 0 to 1 if all values of a request look like it, else 0 to 255")
      ->type_name("RANGE")
      ->check(one_of({"byte", "unit", "auto"}))
      ->capture_default_str()
      ->group(group);
}

roles::InputRange input_range_from(const std::string& value) {
  // The check of the flag has accepted the value.
  return value == "unit"   ? roles::InputRange::kUnit
         : value == "auto" ? roles::InputRange::kAuto
                           : roles::InputRange::kByte;
}

}  // namespace disttf
