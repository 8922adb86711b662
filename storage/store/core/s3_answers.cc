#include "storage/store/core/s3_answers.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "data/json/json_text.h"
#include "net/wire/text.h"
#include "storage/store/core/xml_elements.h"

namespace disttf::roles {
namespace {

using std::chrono::sys_seconds;

constexpr std::size_t kMaxJsonDepth = 8;  // the parsed answers have one level

StoreError meaning_of(int status, std::string_view code) {
  // Codes of AWS and of stores with the same interface. An invalid token counts as expired, so that
  // the credentials are renewed once.
  static constexpr std::array<std::pair<std::string_view, StoreError>, 13> kCodes{{
      {"NoSuchBucket", StoreError::kNoBucket},
      {"NoSuchKey", StoreError::kNotFound},
      {"RequestTimeTooSkewed", StoreError::kClockSkew},
      {"ExpiredToken", StoreError::kExpired},
      {"InvalidToken", StoreError::kExpired},
      {"TokenRefreshRequired", StoreError::kExpired},
      {"PermanentRedirect", StoreError::kWrongRegion},
      {"TemporaryRedirect", StoreError::kWrongRegion},
      {"AuthorizationHeaderMalformed", StoreError::kWrongRegion},
      {"IllegalLocationConstraintException", StoreError::kWrongRegion},
      {"QuotaExceeded", StoreError::kFull},
      {"InsufficientStorage", StoreError::kFull},
      {"XMinioStorageFull", StoreError::kFull},
  }};
  // A code is more specific than the status.
  const auto found =
      std::ranges::find(kCodes, code, &std::pair<std::string_view, StoreError>::first);
  if (found != kCodes.end()) return found->second;
  if (status == 301 || status == 307) return StoreError::kWrongRegion;
  if (status == 404) return StoreError::kNotFound;
  if (status == 412) return StoreError::kExists;
  if (status == 507) return StoreError::kFull;
  if (status == 401 || status == 403) return StoreError::kDenied;
  return StoreError::kRefused;
}

// Whether a retry may succeed.
bool passes(int status, std::string_view code) {
  return is_passing_status(status) || code == "SlowDown" || code == "InternalError" ||
         code == "RequestTimeout";
}

}  // namespace

std::optional<ListingPage> read_listing(std::string_view xml) {
  ListingPage page;
  ObjectInfo object;
  bool is_listing = false;
  bool is_right = true;
  const bool is_xml = read_xml(xml, [&](std::string_view path, const std::string& text) {
    // An element is reported when it ends, so its fields come before it.
    if (path == "ListBucketResult") {
      is_listing = true;
    } else if (path == "ListBucketResult/Contents/Key") {
      object.key = text;
    } else if (path == "ListBucketResult/Contents/Size") {
      const auto size = net::whole_number(text);
      is_right = is_right && size;
      object.size_bytes = size.value_or(0);
    } else if (path == "ListBucketResult/Contents/ETag") {
      object.etag = text;
    } else if (path == "ListBucketResult/Contents/LastModified") {
      const auto time = time_from_iso(text);
      is_right = is_right && time;
      object.modified = time.value_or(sys_seconds{});
    } else if (path == "ListBucketResult/Contents") {
      is_right = is_right && !object.key.empty();
      // Cleared, so that the next entry inherits no field.
      page.listing.objects.push_back(std::exchange(object, {}));
    } else if (path == "ListBucketResult/CommonPrefixes/Prefix") {
      page.listing.folders.push_back(text);
    } else if (path == "ListBucketResult/NextContinuationToken") {
      page.next = text;
    }
  });
  if (!is_xml || !is_listing || !is_right) return std::nullopt;
  return page;
}

std::string xml_text(std::string_view xml, std::string_view path) {
  std::string found;
  const bool is_xml = read_xml(xml, [&](std::string_view each, const std::string& text) {
    if (each == path) found = text;
  });
  // A document that is cut off could contain a part of the text only.
  return is_xml ? found : "";
}

std::optional<Credentials> credentials_from_xml(std::string_view xml) {
  const std::string in =
      "AssumeRoleWithWebIdentityResponse/AssumeRoleWithWebIdentityResult/Credentials/";
  Credentials found{.key_id = xml_text(xml, in + "AccessKeyId"),
                    .secret = xml_text(xml, in + "SecretAccessKey"),
                    .token = xml_text(xml, in + "SessionToken"),
                    .end = time_from_iso(xml_text(xml, in + "Expiration"))};
  if (found.key_id.empty() || found.secret.empty()) return std::nullopt;
  return found;
}

std::optional<Credentials> credentials_from_json(std::string_view text) {
  const auto json = data::parse_json(text, kMaxJsonDepth);
  if (!json.is_object()) return std::nullopt;
  Credentials found{.key_id = data::member_text(json, "AccessKeyId"),
                    .secret = data::member_text(json, "SecretAccessKey"),
                    .token = data::member_text(json, "Token"),
                    .end = time_from_iso(data::member_text(json, "Expiration"))};
  if (found.key_id.empty() || found.secret.empty()) return std::nullopt;
  return found;
}

StoreRefusal s3_refusal(int status, std::string_view reason, std::string_view body,
                        std::string_view region) {
  const std::string code = xml_text(body, "Error/Code");
  const std::string message = xml_text(body, "Error/Message");
  std::string where(region);
  // HEAD has no body, so the header is read first.
  if (where.empty()) where = xml_text(body, "Error/Region");
  StoreRefusal refusal{.error = meaning_of(status, code),
                       .sentence = answered_text(status, reason),
                       .may_pass = passes(status, code)};
  // Callers treat an unavailable store as such, whatever status has said so.
  if (refusal.may_pass) refusal.error = StoreError::kAway;
  if (!code.empty()) {
    refusal.sentence += ", " + net::one_line(net::cut_utf8(code, net::kMaxShownBytes));
  }
  if (!message.empty()) refusal.sentence += ": " + net::one_line(net::cut_utf8(message, 200));
  if (refusal.error == StoreError::kWrongRegion && !where.empty()) {
    refusal.sentence += "; the bucket is in " + net::quoted(where);
  }
  return refusal;
}

}  // namespace disttf::roles
