#include "roles/store/core/s3_answers.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "data/json_depth.h"
#include "net/wire/text.h"
#include "roles/store/core/xml_elements.h"

namespace disttf::roles {
namespace {

using std::chrono::sys_seconds;

constexpr int kMaxWaitSeconds = 20;
constexpr std::size_t kMaxJsonDepth = 8;  // what is read here has one level

// Digits alone.
std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

struct DateParts {
  std::string_view year, month, day, hour, minute, second;
};

std::optional<sys_seconds> time_of(const DateParts& parts, std::optional<std::uint64_t> month) {
  const auto year = whole_number(parts.year);
  const auto day = whole_number(parts.day);
  const auto hour = whole_number(parts.hour);
  const auto minute = whole_number(parts.minute);
  const auto second = whole_number(parts.second);
  if (!year || !month || !day || !hour || !minute || !second || *year > 9999 || *hour > 23 ||
      *minute > 59 || *second > 60) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date(std::chrono::year(static_cast<int>(*year)),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day)));
  if (!date.ok()) return std::nullopt;
  return sys_seconds(std::chrono::sys_days(date)) + std::chrono::hours(*hour) +
         std::chrono::minutes(*minute) + std::chrono::seconds(*second);
}

StoreError meaning_of(int status, std::string_view code) {
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

bool passes(int status, std::string_view code) {
  static constexpr std::array<int, 7> kPassing{408, 409, 429, 500, 502, 503, 504};
  return std::ranges::find(kPassing, status) != kPassing.end() || code == "SlowDown" ||
         code == "InternalError" || code == "RequestTimeout";
}

std::string text_in(const nlohmann::json& json, const char* name) {
  const auto found = json.find(name);
  return found == json.end() || !found->is_string() ? "" : found->get<std::string>();
}

}  // namespace

std::string iso_text(sys_seconds time) {
  std::string text = amazon_time(time);  // 20261122T083000Z
  for (const std::size_t at : {13U, 11U}) text.insert(at, ":");
  for (const std::size_t at : {6U, 4U}) text.insert(at, "-");
  return text;
}

std::optional<sys_seconds> time_from_iso(std::string_view text) {
  if (text.size() < 20 || text[4] != '-' || text[7] != '-' || text[10] != 'T' || text[13] != ':' ||
      text[16] != ':' || text.back() != 'Z') {
    return std::nullopt;
  }
  return time_of({.year = text.substr(0, 4),
                  .month = {},
                  .day = text.substr(8, 2),
                  .hour = text.substr(11, 2),
                  .minute = text.substr(14, 2),
                  .second = text.substr(17, 2)},
                 whole_number(text.substr(5, 2)));
}

std::optional<sys_seconds> time_from_http(std::string_view text) {
  static constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  if (text.size() != 29 || !text.ends_with(" GMT") || text[4] != ' ' || text[7] != ' ' ||
      text[11] != ' ' || text[16] != ' ' || text[19] != ':' || text[22] != ':') {
    return std::nullopt;
  }
  const std::size_t month = kMonths.find(text.substr(8, 3));
  if (month == std::string_view::npos || month % 3 != 0) return std::nullopt;
  return time_of({.year = text.substr(12, 4),
                  .month = {},
                  .day = text.substr(5, 2),
                  .hour = text.substr(17, 2),
                  .minute = text.substr(20, 2),
                  .second = text.substr(23, 2)},
                 month / 3 + 1);
}

std::optional<ListingPage> read_listing(std::string_view xml) {
  ListingPage page;
  ObjectInfo object;
  bool is_listing = false;
  bool is_right = true;
  const bool is_xml = read_xml(xml, [&](std::string_view path, const std::string& text) {
    if (path == "ListBucketResult") {
      is_listing = true;
    } else if (path == "ListBucketResult/Contents/Key") {
      object.key = text;
    } else if (path == "ListBucketResult/Contents/Size") {
      const auto size = whole_number(text);
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

bool is_listing_of(const ObjectListing& listing, std::string_view prefix) {
  return std::ranges::all_of(
             listing.objects,
             [prefix](const ObjectInfo& object) { return object.key.starts_with(prefix); }) &&
         std::ranges::all_of(listing.folders, [prefix](const std::string& folder) {
           return folder.size() > prefix.size() && folder.starts_with(prefix) &&
                  folder.ends_with('/');
         });
}

std::string xml_text(std::string_view xml, std::string_view path) {
  std::string found;
  const bool is_xml = read_xml(xml, [&](std::string_view each, const std::string& text) {
    if (each == path) found = text;
  });
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
  if (data::json_depth(text) > kMaxJsonDepth) return std::nullopt;
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  Credentials found{.key_id = text_in(json, "AccessKeyId"),
                    .secret = text_in(json, "SecretAccessKey"),
                    .token = text_in(json, "Token"),
                    .end = time_from_iso(text_in(json, "Expiration"))};
  if (found.key_id.empty() || found.secret.empty()) return std::nullopt;
  return found;
}

S3Refusal s3_refusal(int status, std::string_view reason, std::string_view body,
                     std::string_view region) {
  const std::string code = xml_text(body, "Error/Code");
  const std::string message = xml_text(body, "Error/Message");
  std::string where(region);
  if (where.empty()) where = xml_text(body, "Error/Region");
  S3Refusal refusal{.error = meaning_of(status, code), .sentence = {}, .may_pass = false};
  refusal.may_pass = passes(status, code);
  if (refusal.may_pass) refusal.error = StoreError::kAway;
  refusal.sentence = "the store answered " + std::to_string(status);
  if (!reason.empty()) {
    refusal.sentence += " (" + net::one_line(net::cut_utf8(reason, net::kMaxShownBytes)) + ")";
  }
  if (!code.empty()) {
    refusal.sentence += ", " + net::one_line(net::cut_utf8(code, net::kMaxShownBytes));
  }
  if (!message.empty()) refusal.sentence += ": " + net::one_line(net::cut_utf8(message, 200));
  if (refusal.error == StoreError::kWrongRegion && !where.empty()) {
    refusal.sentence += "; the bucket is in " + net::quoted(where);
  }
  return refusal;
}

std::chrono::milliseconds wait_before_try(int next, std::string_view retry_after, double fraction) {
  if (const auto seconds = whole_number(retry_after)) {
    return std::chrono::seconds(std::min<std::uint64_t>(*seconds, kMaxWaitSeconds));
  }
  const int most = std::min(kMaxWaitSeconds, 1 << std::clamp(next - 2, 0, 10));
  return std::chrono::milliseconds(static_cast<std::int64_t>(fraction * 1000.0 * most));
}

}  // namespace disttf::roles
