// What can be wrong with a store, as error codes, so that whoever is told only a code can say it.
#pragma once

#include <system_error>

namespace disttf::roles {

enum class StoreError {
  kAway = 1,       // could not be had, after several tries; what is there is not known
  kNoCredentials,  // nowhere
  kNoGoogleCredentials,
  kDenied,   // the credentials are wrong, or may not
  kExpired,  // the credentials were good once
  kClockSkew,
  kWrongRegion,
  kNoBucket,
  kNotFound,
  kExists,
  kFull,
  kNoConditions,  // it takes If-None-Match and does not heed it
  kRefused,       // anything else that the store will not do
  kBadAnswer,     // what came is not what such a store answers
};

// Some of these are what the system has as well: kAway is equivalent to
// std::errc::resource_unavailable_try_again, kNotFound to no_such_file_or_directory, kExists to
// file_exists, kFull to no_space_on_device, kDenied to permission_denied.
[[nodiscard]] const std::error_category& store_category() noexcept;
[[nodiscard]] std::error_code make_error_code(StoreError error) noexcept;

// What `use` returns, or the code of the std::system_error that it throws.
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
