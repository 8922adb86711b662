// Shared by tests of errors: what a call throws.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>

namespace disttf {

// Returns the Error that the call throws, or nothing. Does not catch other exceptions.
template <typename Error, typename Call>
std::optional<Error> thrown(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

// Returns the message of the Error that the call throws, or `none`.
template <typename Error = std::invalid_argument, typename Call>
std::string sentence_of(const Call& call, const char* none = "(nothing was thrown)") {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return none;
}

}  // namespace disttf
