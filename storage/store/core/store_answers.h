// What the answers of all stores share: errors, times, pages of a listing, and the delays between
// tries.
//
// Pure functions; callable from any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "storage/store/core/object_store.h"
#include "storage/store/core/store_error.h"

namespace disttf::roles {

// The meaning of an error status.
struct StoreRefusal {
  std::error_code error = StoreError::kRefused;
  std::string sentence;   // for messages: "the store answered 403 (Forbidden): ..."
  bool may_pass = false;  // a retry, perhaps at another server, may succeed
};

// The beginning of such a sentence: "the store answered 403 (Forbidden)".
[[nodiscard]] std::string answered_text(int status, std::string_view reason);

// Whether a retry may succeed after this status.
[[nodiscard]] bool is_passing_status(int status);

// "2026-11-22T08:30:00Z".
[[nodiscard]] std::string iso_text(std::chrono::sys_seconds time);
// Parses the same, with or without fractions of a second.
[[nodiscard]] std::optional<std::chrono::sys_seconds> time_from_iso(std::string_view text);
// Parses "Sun, 06 Nov 1994 08:49:37 GMT", the only form that servers send today.
[[nodiscard]] std::optional<std::chrono::sys_seconds> time_from_http(std::string_view text);

// A page of a listing.
struct ListingPage {
  ObjectListing listing;
  std::string next;  // the token of the next page; empty: this is the last
};
// Whether all entries have the requested prefix.
[[nodiscard]] bool is_listing_of(const ObjectListing& listing, std::string_view prefix);
// Fetches and joins all pages: the first is requested with an empty text, the others with the
// `next` of the page before. Throws std::system_error (kBadAnswer, for `url`) if a page is
// malformed, has another prefix, or names itself or an earlier one as the next, and for more than
// 100 000 pages.
using AskForPage = std::function<std::optional<ListingPage>(const std::string& next)>;
[[nodiscard]] ObjectListing all_pages(const std::string& url, std::string_view prefix,
                                      const AskForPage& ask);

// Whether the object exists and has these bytes.
[[nodiscard]] bool has_bytes(const std::optional<ObjectHead>& object,
                             std::span<const std::byte> bytes);

inline constexpr int kStoreTries = 3;

// The delay before try `next` (the second is 2), with `fraction` drawn from [0, 1): full jitter
// below 1, 2, 4 .. 20 s, or the server's Retry-After, up to 20 s.
[[nodiscard]] std::chrono::milliseconds wait_before_try(int next, std::string_view retry_after,
                                                        double fraction);

}  // namespace disttf::roles
