// Parses an HTTP/1.x response from untrusted bytes.
//
// A push parser without a socket: the caller feeds what arrived and gets the parts that are body.
// One response per object; skips interim ones (100 Continue) before it. Pure; use by one thread.
#pragma once

#include <http_parser.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "net/http/http_error.h"

namespace disttf::net {

// Including interim responses. Typical mirrors send about 1 KiB.
inline constexpr std::size_t kMaxHttpHeadBytes = 64 * 1024;

// The header fields that clients use. Repeated fields are joined with ", ".
struct HttpHead {
  int status = 0;
  std::string reason;
  std::optional<std::uint64_t> content_length;  // as announced; bytes of this body
  std::string location;
  std::string content_range;
  std::string content_encoding;
  std::string transfer_encoding;
  std::string accept_ranges;
  std::string etag;
  std::string date;  // the server's current time
  std::string last_modified;
  std::string retry_after;
  std::string bucket_region;  // x-amz-bucket-region: the actual region of an S3 bucket
  std::string generation;     // x-goog-generation: which object of this name it is
  std::string checksums;      // x-goog-hash: "crc32c=n03x6A==, md5=..."
  std::string content_type;
};

// "bytes 100-199/200", "bytes 100-199/*", "bytes */200".
struct ContentRange {
  std::optional<std::uint64_t> first;  // of the bytes sent; without this and `last`: none are
  std::optional<std::uint64_t> last;   // inclusive
  std::optional<std::uint64_t> total;  // of the whole file
  friend bool operator==(const ContentRange&, const ContentRange&) = default;
};
[[nodiscard]] std::optional<ContentRange> read_content_range(std::string_view text);

class HttpResponseParser {
 public:
  // A 2xx answer to CONNECT has no body, whatever its header says: the tunnel begins. An answer to
  // HEAD has none either. kGet: any other method.
  enum class Request : std::uint8_t { kGet, kHead, kConnect };

  explicit HttpResponseParser(Request request);
  HttpResponseParser(const HttpResponseParser&) = delete;
  HttpResponseParser& operator=(const HttpResponseParser&) = delete;

  // Takes the next bytes and appends views of those that are body to `body`. Bytes after the end of
  // the response are not used, but counted in excess_bytes(). Errors: HttpError::kBadResponse,
  // kHeaderTooLarge. The parser is not usable after an error.
  [[nodiscard]] std::error_code feed(std::span<const std::byte> bytes,
                                     std::vector<std::span<const std::byte>>& body);
  // Reports that the peer has closed. No error if the response is complete, or of the kind that
  // this completes; else HttpError::kShortBody, or kBadResponse within the header.
  [[nodiscard]] std::error_code finish();

  [[nodiscard]] bool head_complete() const noexcept { return head_complete_; }
  [[nodiscard]] bool complete() const noexcept { return complete_; }
  [[nodiscard]] const HttpHead& head() const noexcept { return head_; }  // needs head_complete()
  // Whether another request may follow on the connection. REQUIRES: complete().
  [[nodiscard]] bool keeps_alive() const noexcept { return keeps_alive_; }
  [[nodiscard]] std::size_t excess_bytes() const noexcept { return excess_bytes_; }

 private:
  // http_parser's callbacks; it passes itself, with this object in its `data`.
  static const http_parser_settings& settings() noexcept;
  static HttpResponseParser& self(http_parser* parser) noexcept;
  int on_headers_complete();
  int on_message_complete();
  void append_to_name(std::string_view text);
  void append_to_value(std::string_view text);
  [[nodiscard]] std::string* field_named(std::string_view name) noexcept;
  [[nodiscard]] bool interim() const noexcept;

  Request request_;
  http_parser parser_{};
  HttpHead head_;
  std::string name_;              // of the current header field, lower case
  std::string* value_ = nullptr;  // destination of its value; null: dropped
  bool name_complete_ = true;     // the next piece of a name begins a new field
  bool head_complete_ = false;
  bool complete_ = false;
  bool keeps_alive_ = false;
  std::size_t head_bytes_ = 0;
  std::size_t excess_bytes_ = 0;
  std::vector<std::span<const std::byte>>* body_ = nullptr;  // of the current feed()
};

}  // namespace disttf::net
