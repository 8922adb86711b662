// What Google's Cloud Storage says over its JSON API, out of bytes that we do not trust: objects,
// listings, refusals, checksums; and what it is told of an object that it is to keep.
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

#include "roles/store/core/store_answers.h"

namespace disttf::roles {

// A checksum is sent as four bytes, the highest first, in base64: "n03x6A==".
[[nodiscard]] std::string crc32c_text(std::uint32_t sum);
[[nodiscard]] std::optional<std::uint32_t> crc32c_from(std::string_view text);
// Out of the header x-goog-hash, "crc32c=n03x6A==, md5=...".
[[nodiscard]] std::optional<std::uint32_t> crc32c_in(std::string_view checksums);

// Its etag is the generation: each write of a name makes another one, which requests may ask for.
[[nodiscard]] std::optional<ObjectInfo> read_gcs_object(std::string_view json);

// A page of a listing, whose `next` is the pageToken.
[[nodiscard]] std::optional<ListingPage> read_gcs_listing(std::string_view json);

// What a copy within the store answers, which may want to be asked for again. nullopt: it is none.
struct GcsCopy {
  bool is_done = false;
  std::string token;  // of the next request, where it is not done
};
[[nodiscard]] std::optional<GcsCopy> read_gcs_copy(std::string_view json);

// What a status that is no success means. `is_of_bucket`: the bucket was asked for, not an object.
[[nodiscard]] StoreRefusal gcs_refusal(int status, std::string_view reason, std::string_view body,
                                       bool is_of_bucket);

// The body of an upload in one request, multipart/related: what is said of the object, and its
// bytes. `boundary` must be in neither.
[[nodiscard]] std::vector<std::byte> gcs_upload_body(std::span<const std::byte> bytes,
                                                     std::uint32_t crc32c,
                                                     std::string_view boundary);
// The body of a request that makes one object of several, which each must be of the generation that
// is its etag.
[[nodiscard]] std::string gcs_compose_body(std::span<const ObjectInfo> parts);

}  // namespace disttf::roles
