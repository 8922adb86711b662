// HttpResponseParser: any response of a mirror is parsed to the same result however it is cut, and
// the body is a part of the input. The first byte of the input selects the request and the size of
// the pieces.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <vector>

#include "net/http/http_response.h"
#include "tests/fuzz/input.h"

namespace {

using disttf::fuzz::require;
using disttf::net::HttpResponseParser;
using Bytes = std::span<const std::byte>;
using Request = HttpResponseParser::Request;

struct Outcome {
  std::error_code error;
  std::string body;
  bool head_complete = false;
  bool complete = false;
  std::size_t excess_bytes = 0;
  std::tuple<int, std::optional<std::uint64_t>, std::vector<std::string>> head;  // once complete
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

void append(std::string& body, const std::vector<Bytes>& parts, Bytes whole) {
  for (const Bytes part : parts) {
    require(part.data() >= whole.data() && part.size() <= whole.size());
    require(part.data() - whole.data() <= std::ssize(whole) - std::ssize(part));
    body.append(reinterpret_cast<const char*>(part.data()), part.size());
  }
}

Outcome read(Bytes bytes, Request request, std::size_t piece_bytes) {
  HttpResponseParser parser(request);
  Outcome outcome;
  while (!bytes.empty() && !outcome.error) {
    // Separate memory, so that a sanitizer detects a view that outlives its piece.
    const Bytes now = bytes.first(std::min(piece_bytes, bytes.size()));
    const std::vector<std::byte> piece(now.begin(), now.end());
    bytes = bytes.subspan(piece.size());
    std::vector<Bytes> parts;
    outcome.error = parser.feed(piece, parts);
    append(outcome.body, parts, piece);
  }
  if (!outcome.error) outcome.error = parser.finish();
  if (!outcome.error) require(parser.complete() && parser.head_complete());
  outcome.head_complete = parser.head_complete();
  outcome.complete = parser.complete();
  outcome.excess_bytes = parser.excess_bytes();
  if (parser.head_complete()) {
    const disttf::net::HttpHead& head = parser.head();
    outcome.head = {head.status,
                    head.content_length,
                    {head.reason, head.location, head.content_range, head.content_encoding,
                     head.transfer_encoding, head.accept_ranges}};
  }
  return outcome;
}

void check_content_range(std::string_view text) {
  const auto range = disttf::net::read_content_range(text);
  if (!range) return;
  require(range->first.has_value() == range->last.has_value());
  if (range->first) require(*range->first <= *range->last);
  if (range->last && range->total) require(*range->last < *range->total);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // The limit of the head applies per piece: with other cuts, a longer head may pass or not.
  if (size == 0 || size > disttf::net::kMaxHttpHeadBytes) return 0;
  const Bytes bytes = std::as_bytes(std::span(data, size)).subspan(1);
  const Request request = data[0] % 2 == 0 ? Request::kGet : Request::kConnect;
  const Outcome whole = read(bytes, request, bytes.size());
  if (whole.error) {
    // The data before an error depends on the pieces.
    require(read(bytes, request, 1U + data[0] / 2U).error == whole.error);
  } else {
    require(read(bytes, request, 1U + data[0] / 2U) == whole);
    const auto& announced = std::get<1>(whole.head);
    require(!announced || whole.body.size() <= *announced);
    require(whole.body.size() + whole.excess_bytes <= bytes.size());
  }
  check_content_range({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  return 0;
}
