#include "main/arguments.h"

#include <algorithm>
#include <cctype>

namespace disttf {
std::optional<std::string> as_boolean(std::string_view word) {
  std::string lower(word);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (lower == "true" || lower == "1" || lower == "yes" || lower == "on") {
    return "true";
  }
  if (lower == "false" || lower == "0" || lower == "no" || lower == "off") {
    return "false";
  }
  return std::nullopt;
}

std::vector<std::string> normalize_arguments(std::span<const std::string> arguments,
                                             const std::function<bool(std::string_view)>& is_flag) {
  std::vector<std::string> out;
  for (std::size_t each = 0; each < arguments.size(); ++each) {
    const std::string& argument = arguments[each];
    // Values are never touched: only names have a second spelling, and a value may contain hyphens.
    if (!argument.starts_with("--")) {
      out.push_back(argument);
      continue;
    }
    const std::size_t equals = std::min(argument.find('='), argument.size());
    std::string name = argument.substr(0, equals);
    std::replace(name.begin() + 2, name.end(), '-', '_');
    std::string value = argument.substr(equals);  // with its "=", or empty
    if (is_flag(name)) {
      if (!value.empty()) {
        // What is no boolean stays as it is: the flag's check reports it with the user's spelling.
        value = "=" + as_boolean(value.substr(1)).value_or(value.substr(1));
      } else if (each + 1 < arguments.size() && as_boolean(arguments[each + 1])) {
        value = "=" + *as_boolean(arguments[++each]);
      }
    }
    out.push_back(name + value);
  }
  return out;
}

}  // namespace disttf
