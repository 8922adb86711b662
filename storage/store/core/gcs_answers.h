// Parses answers of Google Cloud Storage's JSON API, which are untrusted: objects, listings,
// errors, checksums; and builds the bodies of its uploads.
//
// Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/store/core/store_answers.h"

namespace disttf::roles {

// A checksum is four bytes, most significant first, in base64: "n03x6A==".
[[nodiscard]] std::string crc32c_text(std::uint32_t sum);
[[nodiscard]] std::optional<std::uint32_t> crc32c_from(std::string_view text);
// Parses the header x-goog-hash, "crc32c=n03x6A==, md5=...".
[[nodiscard]] std::optional<std::uint32_t> crc32c_in(std::string_view checksums);

// The etag is the generation, which changes with each write of a name; requests can require one.
[[nodiscard]] std::optional<ObjectInfo> read_gcs_object(std::string_view json);

// A page of a listing, whose `next` is the pageToken.
[[nodiscard]] std::optional<ListingPage> read_gcs_listing(std::string_view json);

// The answer to a copy within the store, which may need further requests. nullopt: malformed.
struct GcsCopy {
  bool is_done = false;
  std::string token;               // for the next request, if the copy is not done
  std::uint64_t copied_bytes = 0;  // by all requests of the copy so far
};
[[nodiscard]] std::optional<GcsCopy> read_gcs_copy(std::string_view json);

// The meaning of an error status. `is_of_bucket`: the request was about the bucket, not an object.
[[nodiscard]] StoreRefusal gcs_refusal(int status, std::string_view reason, std::string_view body,
                                       bool is_of_bucket);

// The multipart/related body of an upload in one request: the object's metadata, and its bytes.
// `boundary` must occur in neither.
[[nodiscard]] std::vector<std::byte> gcs_upload_body(std::span<const std::byte> bytes,
                                                     std::uint32_t crc32c,
                                                     std::string_view boundary);
// The body of a request that composes an object of several, each of which must have the generation
// in its etag.
[[nodiscard]] std::string gcs_compose_body(std::span<const ObjectInfo> parts);

}  // namespace disttf::roles
