// What the answers of all stores have in common: refusals, times, pages of a listing, how long to
// wait before another try.
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

#include "roles/store/core/object_store.h"
#include "roles/store/core/store_error.h"

namespace disttf::roles {

// What an answer that is no success means.
struct StoreRefusal {
  std::error_code error = StoreError::kRefused;
  std::string sentence;  // what was answered, for people: "the store answered 403 (Forbidden): ..."
  bool may_pass = false;  // the same may be granted in a moment, or by another server
};

// How such a sentence begins: "the store answered 403 (Forbidden)".
[[nodiscard]] std::string answered_text(int status, std::string_view reason);

// Digits alone.
[[nodiscard]] std::optional<std::uint64_t> whole_number(std::string_view text);

// "2026-11-22T08:30:00Z".
[[nodiscard]] std::string iso_text(std::chrono::sys_seconds time);
// The same, with or without a fraction of a second.
[[nodiscard]] std::optional<std::chrono::sys_seconds> time_from_iso(std::string_view text);
// "Sun, 06 Nov 1994 08:49:37 GMT", the one form that servers send today.
[[nodiscard]] std::optional<std::chrono::sys_seconds> time_from_http(std::string_view text);

// A page of a listing.
struct ListingPage {
  ObjectListing listing;
  std::string next;  // what the page after it is asked for by; empty: this is the last
};
// Whether all that is in it is below that prefix, as was asked for.
[[nodiscard]] bool is_listing_of(const ObjectListing& listing, std::string_view prefix);
// All pages as one: the first is asked for with an empty text, each other one with the `next` of
// that before it. Throws std::system_error (kBadAnswer, of `url`) where one cannot be read, is of
// another prefix, or is its own successor.
using AskForPage = std::function<std::optional<ListingPage>(const std::string& next)>;
[[nodiscard]] ObjectListing all_pages(const std::string& url, std::string_view prefix,
                                      const AskForPage& ask);

// It is there, and is these bytes.
[[nodiscard]] bool has_bytes(const std::optional<ObjectHead>& object,
                             std::span<const std::byte> bytes);

inline constexpr int kStoreTries = 3;

// How long to wait before try `next` (the second is 2), with `fraction` drawn from [0, 1): full
// jitter below 1, 2, 4 .. 20 s, or what the server's Retry-After asks for, up to 20 s.
[[nodiscard]] std::chrono::milliseconds wait_before_try(int next, std::string_view retry_after,
                                                        double fraction);

}  // namespace disttf::roles
