#include "storage/store/core/store_error.h"

#include <string>

namespace disttf::roles {
namespace {

class StoreCategory final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "store"; }
  [[nodiscard]] std::string message(int code) const override {
    switch (static_cast<StoreError>(code)) {
      case StoreError::kAway:
        return "the store is unavailable";
      case StoreError::kNoCredentials:
        return "no credentials were found: neither AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
               "nor "
               "AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN, nor the profile in "
               "~/.aws/credentials or ~/.aws/config (AWS_PROFILE), nor "
               "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or _FULL_URI, nor an instance's metadata";
      case StoreError::kNoGoogleCredentials:
        return "no credentials were found: neither GOOGLE_APPLICATION_CREDENTIALS, nor gcloud's "
               "application_default_credentials.json, nor a machine's metadata server";
      case StoreError::kDenied:
        return "the store denies access with these credentials";
      case StoreError::kExpired:
        return "the credentials have expired";
      case StoreError::kClockSkew:
        return "this machine's clock is more than 15 minutes from the store's";
      case StoreError::kWrongRegion:
        return "the bucket is in another region (AWS_REGION)";
      case StoreError::kNoBucket:
        return "there is no such bucket";
      case StoreError::kNotFound:
        return "there is no such object";
      case StoreError::kExists:
        return "the object exists already";
      case StoreError::kFull:
        return "the store is full";
      case StoreError::kNoConditions:
        return "the store ignores If-None-Match, without which two writers could take one name";
      case StoreError::kRefused:
        return "the store rejects the request";
      case StoreError::kBadAnswer:
        return "the answer is malformed";
    }
    return "unknown store error " + std::to_string(code);
  }
  // Maps the errors that users of data::FileSystem compare with std::errc. All others equal only
  // themselves.
  [[nodiscard]] std::error_condition default_error_condition(int code) const noexcept override {
    switch (static_cast<StoreError>(code)) {
      case StoreError::kAway:
        return std::errc::resource_unavailable_try_again;
      case StoreError::kNotFound:
        return std::errc::no_such_file_or_directory;
      case StoreError::kExists:
        return std::errc::file_exists;
      case StoreError::kFull:
        return std::errc::no_space_on_device;
      case StoreError::kDenied:
        return std::errc::permission_denied;
      default:
        return {code, *this};
    }
  }
};

}  // namespace

const std::error_category& store_category() noexcept {
  // One object: error categories are equal if their addresses are.
  static const StoreCategory category;
  return category;
}

std::error_code make_error_code(StoreError error) noexcept {
  return {static_cast<int>(error), store_category()};
}

}  // namespace disttf::roles
