// The errors of stores as error codes, so that code that passes only a code can explain it.
#pragma once

#include <system_error>

namespace disttf::roles {

enum class StoreError {
  kAway = 1,       // unavailable after several tries; the state of the store is unknown
  kNoCredentials,  // no source has any
  kNoGoogleCredentials,
  kDenied,   // wrong credentials, or missing permission
  kExpired,  // the credentials have expired
  kClockSkew,
  kWrongRegion,
  kNoBucket,
  kNotFound,
  kExists,
  kFull,
  kNoConditions,  // it ignores If-None-Match
  kRefused,       // any other rejection
  kBadAnswer,     // the answer is malformed
};

// Some are equivalent to the system's errors: kAway to
// std::errc::resource_unavailable_try_again, kNotFound to no_such_file_or_directory, kExists to
// file_exists, kFull to no_space_on_device, kDenied to permission_denied.
[[nodiscard]] const std::error_category& store_category() noexcept;
[[nodiscard]] std::error_code make_error_code(StoreError error) noexcept;

// Returns the result of `use`, or the code of the std::system_error that it throws.
template <typename Use>
std::error_code error_code_of(const Use& use) {
  try {
    return use();
  } catch (const std::system_error& error) {
    return error.code();
  }
}

}  // namespace disttf::roles

template <>
struct std::is_error_code_enum<disttf::roles::StoreError> : std::true_type {};
