#include "storage/store/core/store_answers.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <set>
#include <utility>

#include "net/wire/text.h"
#include "storage/store/core/aws_identity.h"

namespace disttf::roles {
namespace {

using std::chrono::sys_seconds;

// Limits the Retry-After of a store, too.
constexpr int kMaxWaitSeconds = 20;

struct DateParts {
  std::string_view year, month, day, hour, minute, second;
};

// The month comes apart from the rest, since HTTP dates have its name.
std::optional<sys_seconds> time_of(const DateParts& parts, std::optional<std::uint64_t> month) {
  const auto year = net::whole_number(parts.year);
  const auto day = net::whole_number(parts.day);
  const auto hour = net::whole_number(parts.hour);
  const auto minute = net::whole_number(parts.minute);
  const auto second = net::whole_number(parts.second);
  // 60 allows a leap second.
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

}  // namespace

std::string answered_text(int status, std::string_view reason) {
  std::string text = "the store answered " + std::to_string(status);
  if (!reason.empty()) {
    text += " (" + net::one_line(net::cut_utf8(reason, net::kMaxShownBytes)) + ")";
  }
  return text;
}

bool is_passing_status(int status) {
  // 409 comes while another request writes the same object.
  static constexpr std::array<int, 7> kPassing{408, 409, 429, 500, 502, 503, 504};
  return std::ranges::find(kPassing, status) != kPassing.end();
}

std::string iso_text(sys_seconds time) {
  std::string text = amazon_time(time);  // 20261122T083000Z
  // From the end, so that earlier positions stay valid.
  for (const std::size_t at : {13U, 11U}) text.insert(at, ":");
  for (const std::size_t at : {6U, 4U}) text.insert(at, "-");
  return text;
}

std::optional<sys_seconds> time_from_iso(std::string_view text) {
  // Fractions of a second may follow the seconds. They are ignored.
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
                 net::whole_number(text.substr(5, 2)));
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

// The caller removes the prefix from each name, so each has to begin with it.
bool is_listing_of(const ObjectListing& listing, std::string_view prefix) {
  return std::ranges::all_of(
             listing.objects,
             [prefix](const ObjectInfo& object) { return object.key.starts_with(prefix); }) &&
         std::ranges::all_of(listing.folders, [prefix](const std::string& folder) {
           return folder.size() > prefix.size() && folder.starts_with(prefix) &&
                  folder.ends_with('/');
         });
}

ObjectListing all_pages(const std::string& url, std::string_view prefix, const AskForPage& ask) {
  // A hundred million objects.
  constexpr std::size_t kMostPages = 100'000;
  ObjectListing all;
  std::string next;
  std::set<std::string> asked;
  do {
    auto page = ask(next);
    // A page that names an earlier one as the next would repeat for ever.
    asked.insert(std::move(next));
    if (!page || !is_listing_of(page->listing, prefix) ||
        (!page->next.empty() && asked.contains(page->next)) || asked.size() == kMostPages) {
      throw std::system_error(StoreError::kBadAnswer, "the listing of " + url + " cannot be read");
    }
    std::ranges::move(page->listing.objects, std::back_inserter(all.objects));
    std::ranges::move(page->listing.folders, std::back_inserter(all.folders));
    next = std::move(page->next);
  } while (!next.empty());
  return all;
}

bool has_bytes(const std::optional<ObjectHead>& object, std::span<const std::byte> bytes) {
  return object && object->bytes.size() == bytes.size() &&
         std::memcmp(object->bytes.data(), bytes.data(), bytes.size()) == 0;
}

std::chrono::milliseconds wait_before_try(int next, std::string_view retry_after, double fraction) {
  // The store knows best how long it is overloaded, within the limit. A date in the header is
  // ignored.
  if (const auto seconds = net::whole_number(retry_after)) {
    return std::chrono::seconds(std::min<std::uint64_t>(*seconds, kMaxWaitSeconds));
  }
  // Exponential back-off with full jitter, so that many tasks do not retry in step.
  // 1, 2, 4, ... seconds. The bound of 10 keeps the shift defined.
  const int most = std::min(kMaxWaitSeconds, 1 << std::clamp(next - 2, 0, 10));
  return std::chrono::milliseconds(static_cast<std::int64_t>(fraction * 1000.0 * most));
}

}  // namespace disttf::roles
