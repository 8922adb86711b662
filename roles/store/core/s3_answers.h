// What S3 says, out of bytes that we do not trust: listings, errors, times; and whether to ask
// again.
//
// Pure functions; callable from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "roles/store/core/object_store.h"
#include "roles/store/core/sigv4.h"
#include "roles/store/core/store_error.h"

namespace disttf::roles {

// "2026-11-22T08:30:00Z".
[[nodiscard]] std::string iso_text(std::chrono::sys_seconds time);
// The same, with or without a fraction of a second.
[[nodiscard]] std::optional<std::chrono::sys_seconds> time_from_iso(std::string_view text);
// "Sun, 06 Nov 1994 08:49:37 GMT", the one form that servers send today.
[[nodiscard]] std::optional<std::chrono::sys_seconds> time_from_http(std::string_view text);

// One page of ListObjectsV2. (Keys with control characters, which XML has no place for, are not
// asked to be encoded: servers encode blanks in different ways.)
struct ListingPage {
  ObjectListing listing;
  std::string next;  // continuation-token of the page after it; empty: this is the last
};
[[nodiscard]] std::optional<ListingPage> read_listing(std::string_view xml);
// Whether all that is in it is below that prefix, as was asked for.
[[nodiscard]] bool is_listing_of(const ObjectListing& listing, std::string_view prefix);

// The text of the element `path`; empty: none.
[[nodiscard]] std::string xml_text(std::string_view xml, std::string_view path);

// What an STS or a metadata server hands out. nullopt: something is missing.
[[nodiscard]] std::optional<Credentials> credentials_from_xml(std::string_view xml);
[[nodiscard]] std::optional<Credentials> credentials_from_json(std::string_view json);

// What a status that is no success means. `sentence` is what was answered, for people: "the store
// answered 403 (Forbidden), AccessDenied: ...".
struct S3Refusal {
  StoreError error = StoreError::kRefused;
  std::string sentence;
  bool may_pass = false;  // the same may be granted in a moment
};
// `status`: 300 or above; or 200 with an error in it, as CompleteMultipartUpload may answer.
// `region`: the header x-amz-bucket-region.
[[nodiscard]] S3Refusal s3_refusal(int status, std::string_view reason, std::string_view body,
                                   std::string_view region);

inline constexpr int kStoreTries = 3;

// How long to wait before try `next` (the second is 2), with `fraction` drawn from [0, 1): full
// jitter below 1, 2, 4 .. 20 s, or what the server's Retry-After asks for, up to 20 s.
[[nodiscard]] std::chrono::milliseconds wait_before_try(int next, std::string_view retry_after,
                                                        double fraction);

}  // namespace disttf::roles
