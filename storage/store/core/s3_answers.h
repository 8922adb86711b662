// Parses answers of S3, which are untrusted: listings, errors, credentials.
//
// Pure functions; callable from any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "storage/store/core/aws_identity.h"
#include "storage/store/core/store_answers.h"

namespace disttf::roles {

// One page of ListObjectsV2, whose `next` is the continuation-token. (Does not request URL
// encoding, which keys with control characters would need in XML: servers encode blanks
// differently.)
[[nodiscard]] std::optional<ListingPage> read_listing(std::string_view xml);
// The text of the element `path`; empty: none.
[[nodiscard]] std::string xml_text(std::string_view xml, std::string_view path);

// Parses the answer of an STS or a metadata server. nullopt: a field is missing.
[[nodiscard]] std::optional<Credentials> credentials_from_xml(std::string_view xml);
[[nodiscard]] std::optional<Credentials> credentials_from_json(std::string_view json);

// The meaning of a `status` of 300 or above, or of a 200 with an error in its body, as
// CompleteMultipartUpload may answer. `region`: the header x-amz-bucket-region.
[[nodiscard]] StoreRefusal s3_refusal(int status, std::string_view reason, std::string_view body,
                                      std::string_view region);

}  // namespace disttf::roles
