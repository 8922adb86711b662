#include "storage/store/core/gcs_answers.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "data/json/json_text.h"
#include "net/wire/base64.h"
#include "net/wire/text.h"

namespace disttf::roles {
namespace {

using data::member_text;
using Json = nlohmann::json;

constexpr std::size_t kMaxGcsDepth = 16;  // an object's access list has four levels
constexpr std::size_t kMaxGcsSaid = 200;  // longest message of the store to pass on

// The interface sends 64-bit numbers, such as the size and the generation, as text.
std::optional<ObjectInfo> object_from(const Json& object) {
  ObjectInfo info{.key = member_text(object, "name"),
                  .etag = member_text(object, "generation"),
                  .crc32c = crc32c_from(member_text(object, "crc32c"))};
  const auto size = net::whole_number(member_text(object, "size"));
  const auto time = time_from_iso(member_text(object, "updated"));
  const bool is_generation = !info.etag.empty() && std::ranges::all_of(info.etag, net::is_digit);
  if (info.key.empty() || !size || !is_generation || !time) return std::nullopt;
  info.size_bytes = *size;
  info.modified = *time;
  return info;
}

// Whether a retry may succeed. A rate limit may also come with status 403 and one of these reasons.
bool is_passing(int status, std::string_view why) {
  return is_passing_status(status) || why == "rateLimitExceeded" || why == "userRateLimitExceeded";
}

StoreError meaning_of_gcs(int status, std::string_view message, bool is_of_bucket) {
  switch (status) {
    // Counts as expired, so that the token is renewed once.
    case 401:
      return StoreError::kExpired;
    case 403:
      return StoreError::kDenied;
    case 404:
      // The body distinguishes a missing bucket from a missing object.
      return is_of_bucket || message.find("bucket does not exist") != std::string_view::npos
                 ? StoreError::kNoBucket
                 : StoreError::kNotFound;
    case 412:
      return StoreError::kExists;
    case 507:
      return StoreError::kFull;
    default:
      return StoreError::kRefused;
  }
}

}  // namespace

std::string crc32c_text(std::uint32_t sum) {
  std::array<std::byte, 4> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    // Big-endian, as the interface defines it.
    bytes[i] = static_cast<std::byte>((sum >> (8 * (3 - i))) & 0xFFU);
  }
  return net::base64(bytes);
}

std::optional<std::uint32_t> crc32c_from(std::string_view text) {
  if (text.size() != 8 || !text.ends_with("==")) return std::nullopt;
  const auto bits = net::base64_bits(text.substr(0, 6));
  if (!bits || (*bits & 15U) != 0) return std::nullopt;  // 36 bits, whose last 4 must be zero
  return static_cast<std::uint32_t>(*bits >> 4U);
}

std::optional<std::uint32_t> crc32c_in(std::string_view checksums) {
  while (!checksums.empty()) {
    const std::size_t end = std::min(checksums.find(','), checksums.size());
    const std::string_view each = net::trim(checksums.substr(0, end));
    constexpr std::string_view kName = "crc32c=";
    if (each.starts_with(kName)) return crc32c_from(each.substr(kName.size()));
    checksums.remove_prefix(std::min(end + 1, checksums.size()));
  }
  return std::nullopt;
}

std::optional<ObjectInfo> read_gcs_object(std::string_view text) {
  return object_from(data::parse_json(text, kMaxGcsDepth));
}

std::optional<ListingPage> read_gcs_listing(std::string_view text) {
  const Json all = data::parse_json(text, kMaxGcsDepth);
  if (!all.is_object()) return std::nullopt;
  ListingPage page{.listing = {}, .next = member_text(all, "nextPageToken")};
  // Either list is absent if it is empty.
  if (const auto items = all.find("items"); items != all.end()) {
    if (!items->is_array()) return std::nullopt;
    for (const Json& each : *items) {
      auto object = object_from(each);
      // A listing with a hole would make a file look absent, so it is rejected as a whole.
      if (!object) return std::nullopt;
      page.listing.objects.push_back(*std::move(object));
    }
  }
  if (const auto prefixes = all.find("prefixes"); prefixes != all.end()) {
    if (!prefixes->is_array()) return std::nullopt;
    for (const Json& each : *prefixes) {
      if (!each.is_string()) return std::nullopt;
      page.listing.folders.push_back(each.get<std::string>());
    }
  }
  return page;
}

std::optional<GcsCopy> read_gcs_copy(std::string_view text) {
  const Json all = data::parse_json(text, kMaxGcsDepth);
  if (!all.is_object()) return std::nullopt;
  const auto done = all.find("done");
  if (done == all.end() || !done->is_boolean()) return std::nullopt;
  GcsCopy copy{
      .is_done = done->get<bool>(),
      .token = member_text(all, "rewriteToken"),
      .copied_bytes = net::whole_number(member_text(all, "totalBytesRewritten")).value_or(0)};
  // Without a token the next request would start the copy anew, for ever.
  if (!copy.is_done && copy.token.empty()) return std::nullopt;
  return copy;
}

StoreRefusal gcs_refusal(int status, std::string_view reason, std::string_view body,
                         bool is_of_bucket) {
  std::string message;
  std::string why;
  const Json all = data::parse_json(body, kMaxGcsDepth);
  if (all.is_object()) {
    const auto error = all.find("error");
    if (error != all.end() && error->is_object()) {
      message = member_text(*error, "message");
      const auto errors = error->find("errors");
      if (errors != error->end() && errors->is_array() && !errors->empty()) {
        why = member_text(errors->front(), "reason");
      }
    }
  }
  StoreRefusal refusal{.error = meaning_of_gcs(status, message, is_of_bucket),
                       .sentence = answered_text(status, reason),
                       .may_pass = is_passing(status, why)};
  // Callers treat an unavailable store as such, whatever status has said so.
  if (refusal.may_pass) refusal.error = StoreError::kAway;
  if (!message.empty() && message != reason) {
    refusal.sentence += ": " + net::one_line(net::cut_utf8(message, kMaxGcsSaid));
  }
  return refusal;
}

std::vector<std::byte> gcs_upload_body(std::span<const std::byte> bytes, std::uint32_t crc32c,
                                       std::string_view boundary) {
  const Json told = {{"crc32c", crc32c_text(crc32c)}, {"contentType", "application/octet-stream"}};
  const std::string line = "--" + std::string(boundary);
  const std::string head = line + "\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n" +
                           data::json_text(told) + "\r\n" + line +
                           "\r\nContent-Type: application/octet-stream\r\n\r\n";
  const std::string tail = "\r\n" + line + "--\r\n";
  // One copy of the bytes: the checksum and the data go in one request, which the store checks as a
  // whole.
  std::vector<std::byte> body(head.size() + bytes.size() + tail.size());
  std::memcpy(body.data(), head.data(), head.size());
  if (!bytes.empty()) std::memcpy(body.data() + head.size(), bytes.data(), bytes.size());
  std::memcpy(body.data() + head.size() + bytes.size(), tail.data(), tail.size());
  return body;
}

std::string gcs_compose_body(std::span<const ObjectInfo> parts) {
  Json sources = Json::array();
  for (const ObjectInfo& part : parts) {
    // A generation is sent as text, because JSON readers may round a number of its size.
    sources.push_back({{"name", part.key}, {"generation", part.etag}});
  }
  const Json all = {{"sourceObjects", std::move(sources)},
                    {"destination", {{"contentType", "application/octet-stream"}}}};
  return data::json_text(all);
}

}  // namespace disttf::roles
