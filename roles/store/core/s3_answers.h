// What S3 says, out of bytes that we do not trust: listings, refusals, credentials.
//
// Pure functions; callable from any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "roles/store/core/sigv4.h"
#include "roles/store/core/store_answers.h"

namespace disttf::roles {

// One page of ListObjectsV2, whose `next` is the continuation-token. (Keys with control characters,
// which XML has no place for, are not asked to be encoded: servers encode blanks in different
// ways.)
[[nodiscard]] std::optional<ListingPage> read_listing(std::string_view xml);
// The text of the element `path`; empty: none.
[[nodiscard]] std::string xml_text(std::string_view xml, std::string_view path);

// What an STS or a metadata server hands out. nullopt: something is missing.
[[nodiscard]] std::optional<Credentials> credentials_from_xml(std::string_view xml);
[[nodiscard]] std::optional<Credentials> credentials_from_json(std::string_view json);

// What a `status` of 300 or above means, or one of 200 with an error in it, as
// CompleteMultipartUpload may answer. `region`: the header x-amz-bucket-region.
[[nodiscard]] StoreRefusal s3_refusal(int status, std::string_view reason, std::string_view body,
                                      std::string_view region);

}  // namespace disttf::roles
