// HttpRequestParser: any bytes sent to a control address are parsed to the same result however they
// are cut, and the parser keeps no more than it received. The first byte of the input sets the size
// of the pieces.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>

#include "net/http/http_request.h"
#include "tests/fuzz/input.h"

namespace {

using disttf::fuzz::require;
using disttf::net::HttpRequestParser;
using disttf::net::HttpServerRequest;

struct Outcome {
  int refusal = 0;
  bool complete = false;
  std::tuple<std::string, std::string, std::string, std::string, std::string, std::string,
             std::string, bool>
      request;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome read(HttpRequestParser& parser, std::string_view bytes, std::size_t piece_bytes) {
  Outcome outcome;
  const std::size_t all = bytes.size();
  while (!bytes.empty() && outcome.refusal == 0) {
    // Separate memory, so that a sanitizer detects a view that outlives its piece.
    const std::string piece(bytes.substr(0, std::min(piece_bytes, bytes.size())));
    bytes.remove_prefix(piece.size());
    outcome.refusal = parser.feed(piece);
  }
  require(outcome.refusal == 0 || !disttf::net::http_reason(outcome.refusal).empty());
  outcome.complete = parser.complete();
  const HttpServerRequest& request = parser.request();
  require(request.path.size() + request.query.size() + request.authorization.size() +
              request.body.size() <=
          all);
  if (outcome.complete) {
    require(disttf::net::is_normal_path(request.path) || request.path == "*");
    outcome.request = {request.method, request.path, request.query,  request.authorization,
                       request.body,   request.host, request.cookie, parser.may_stay_open()};
  }
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  HttpRequestParser parser;
  HttpRequestParser in_pieces;
  const Outcome outcome = read(parser, bytes, bytes.size());
  require(read(in_pieces, bytes, 1U + data[0]) == outcome);
  parser.reset();
  require(read(parser, bytes, bytes.size()) == outcome);
  std::string text(bytes);
  const bool is_decoded = disttf::net::decode_percent(text);
  require(is_decoded ? text.size() <= bytes.size() : text == bytes);
  return 0;
}
