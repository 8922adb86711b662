#include "net/http/http_request.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "net/http/http_status.h"
#include "net/wire/text.h"

namespace disttf::net {
namespace {

// http_parser's value for a length that was not announced.
constexpr auto kNoLength = std::numeric_limits<std::uint64_t>::max();

// The fields that are stored.
struct KeptField {
  std::string_view name;  // lower case
  std::string HttpServerRequest::*member;
  // Joins the values of repeated fields that form one list; empty: a single-value field, which must
  // not be repeated.
  std::string_view separator = {};
};
constexpr std::array<KeptField, 12> kKeptFields = {{
    {"authorization", &HttpServerRequest::authorization},
    {"host", &HttpServerRequest::host},
    {"origin", &HttpServerRequest::origin},
    {"cookie", &HttpServerRequest::cookie, "; "},
    {"accept", &HttpServerRequest::accept, ", "},
    {"accept-encoding", &HttpServerRequest::accept_encoding, ", "},
    {"if-none-match", &HttpServerRequest::if_none_match, ", "},
    {"last-event-id", &HttpServerRequest::last_event_id},
    {"content-type", &HttpServerRequest::content_type},
    {"content-encoding", &HttpServerRequest::content_encoding, ", "},
    {"expect", &HttpServerRequest::expect},
    {"inference-header-content-length", &HttpServerRequest::json_bytes},
}};

// Returns the next member of a comma-separated list in lower case, and removes it from `list`.
std::string next_of(std::string_view& list) {
  const std::size_t end = std::min(list.find(','), list.size());
  std::string member(trim(list.substr(0, end)));
  list.remove_prefix(std::min(end + 1, list.size()));
  for (char& c : member) c = lower(c);
  return member;
}

}  // namespace

// Only canonical paths are accepted: a proxy in front may check "/a/../b" differently than this
// server.
bool is_normal_path(std::string_view path) noexcept {
  const bool is_clean = std::all_of(path.begin(), path.end(), [](char c) {
    return static_cast<unsigned char>(c) >= ' ' && c != '\\' && c != '\x7f';
  });
  if (!is_clean || !path.starts_with('/')) return false;
  path.remove_prefix(1);
  while (true) {
    const std::size_t end = path.find('/');
    const std::string_view segment = path.substr(0, end);
    if (segment == "." || segment == "..") return false;
    if (end == std::string_view::npos) return true;
    if (segment.empty()) return false;
    path.remove_prefix(end + 1);
  }
}

bool takes_gzip(std::string_view accepted) noexcept {
  const std::size_t at = accepted.find("gzip");
  if (at == std::string_view::npos) return false;
  const std::string_view rest = accepted.substr(at, accepted.find(',', at) - at);
  // "q=0" refuses the coding; "q=0.5" accepts it.
  return rest.find("q=0") == std::string_view::npos || rest.find("q=0.") != std::string_view::npos;
}

bool decode_percent(std::string& text) {
  std::string decoded;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      decoded += text[at];
      continue;
    }
    if (text.size() - at < 3) return false;
    const int high = hex_digit(text[at + 1]);
    const int low = hex_digit(text[at + 2]);
    // A zero byte would end the text for C functions.
    if (high < 0 || low < 0 || high + low == 0) return false;
    decoded += static_cast<char>(16 * high + low);
    at += 2;
  }
  text = std::move(decoded);
  return true;
}

std::string_view http_reason(int status) noexcept {
  switch (status) {
    case http_status::kOk:
      return "OK";
    case http_status::kSeeOther:
      return "See Other";
    case http_status::kNotModified:
      return "Not Modified";
    case http_status::kBadRequest:
      return "Bad Request";
    case http_status::kUnauthorized:
      return "Unauthorized";
    case http_status::kForbidden:
      return "Forbidden";
    case http_status::kNotFound:
      return "Not Found";
    case http_status::kMethodNotAllowed:
      return "Method Not Allowed";
    case http_status::kRequestTimeout:
      return "Request Timeout";
    case http_status::kConflict:
      return "Conflict";
    case http_status::kContentTooLarge:
      return "Content Too Large";
    case http_status::kMisdirected:
      return "Misdirected Request";
    case http_status::kExpectationFailed:
      return "Expectation Failed";
    case http_status::kUnsupportedMediaType:
      return "Unsupported Media Type";
    case http_status::kHeadTooLarge:
      return "Request Header Fields Too Large";
    case http_status::kNotImplemented:
      return "Not Implemented";
    case http_status::kUnavailable:
      return "Service Unavailable";
    case http_status::kGatewayTimeout:
      return "Gateway Timeout";
    case http_status::kVersionNotSupported:
      return "HTTP Version Not Supported";
    default:
      return "Internal Server Error";
  }
}

HttpRequestParser::HttpRequestParser(std::size_t max_body_bytes)
    : max_body_bytes_(max_body_bytes), chunks_(max_body_bytes) {
  http_parser_init(&parser_, HTTP_REQUEST);
  parser_.data = this;
}

void HttpRequestParser::reset() {
  constexpr std::size_t kKeptBytes = 64 * 1024;
  http_parser_init(&parser_, HTTP_REQUEST);
  for (const KeptField& field : kKeptFields) {
    (request_.*field.member).clear();
  }
  // The memory of a large body is released, because the connection may stay idle for long.
  if (request_.body.capacity() > kKeptBytes) {
    request_.body = std::string();
  }
  request_.body.clear();
  request_.may_change = false;
  request_.is_http10 = false;
  target_.clear();
  name_.clear();
  in_name_ = false;
  value_ = nullptr;
  seen_ = 0;
  has_transfer_encoding_ = false;
  transfer_encoding_.clear();
  is_chunked_ = false;
  chunks_ = HttpChunks(max_body_bytes_);
  lines_ = HttpHeadLines(kMaxRequestHeadBytes);
  has_excess_ = false;
  may_stay_open_ = false;
  head_complete_ = false;
  complete_ = false;
  refusal_ = 0;
  taken_ = 0;
}

HttpRequestParser& HttpRequestParser::self(http_parser* parser) noexcept {
  return *static_cast<HttpRequestParser*>(parser->data);
}

const http_parser_settings& HttpRequestParser::settings() noexcept {
  static const http_parser_settings kSettings = [] {
    http_parser_settings settings;
    http_parser_settings_init(&settings);
    settings.on_url = [](http_parser* parser, const char* text, std::size_t size) {
      self(parser).target_.append(text, size);
      return 0;
    };
    settings.on_header_field = [](http_parser* parser, const char* text, std::size_t size) {
      return self(parser).on_header_piece(true, {text, size});
    };
    settings.on_header_value = [](http_parser* parser, const char* text, std::size_t size) {
      return self(parser).on_header_piece(false, {text, size});
    };
    settings.on_headers_complete = [](http_parser* parser) { return self(parser).on_head_end(); };
    settings.on_body = [](http_parser* parser, const char* text, std::size_t size) {
      return self(parser).on_body({text, size});
    };
    settings.on_message_complete = [](http_parser* parser) {
      self(parser).complete_ = !self(parser).is_chunked_;  // otherwise the chunks follow
      self(parser).may_stay_open_ = http_should_keep_alive(parser) != 0;
      http_parser_pause(parser, 1);  // what follows is not parsed here
      return 0;
    };
    return settings;
  }();
  return kSettings;
}

// Names and values arrive in pieces, split wherever the bytes were.
int HttpRequestParser::on_header_piece(bool is_name, std::string_view text) {
  // Trailers of a chunked body are ignored: they must not override fields that were checked with
  // the head.
  if (head_complete_) return 0;
  if (is_name) {
    if (!in_name_) name_.clear();
    for (const char c : text) {
      name_ += lower(c);
    }
  } else {
    if (in_name_) refusal_ = begin_value();
    if (value_ != nullptr) value_->append(text);
  }
  in_name_ = is_name;
  return refusal_ == 0 ? 0 : -1;
}

// Sets the destination of the value of `name_`. Returns the status of a refusal, or 0.
int HttpRequestParser::begin_value() {
  value_ = nullptr;
  // Checked at the end of the head. Before it, the result for other mistakes would depend on how
  // the bytes were split.
  if (name_ == "transfer-encoding") {
    if (std::exchange(has_transfer_encoding_, true)) transfer_encoding_ += ',';
    value_ = &transfer_encoding_;
  }
  for (unsigned each = 0; each < kKeptFields.size(); ++each) {
    if (name_ != kKeptFields[each].name) continue;
    const KeptField& field = kKeptFields[each];
    std::string& value = request_.*field.member;
    if ((seen_ & (1U << each)) != 0) {
      // Repeated: it is ambiguous which value counts.
      if (field.separator.empty()) return http_status::kBadRequest;
      value += field.separator;
    }
    seen_ |= 1U << each;
    value_ = &value;
  }
  return 0;
}

void HttpRequestParser::execute(std::string_view bytes) {
  if (bytes.empty()) return;  // http_parser treats empty input as the end
  const std::size_t taken = http_parser_execute(&parser_, &settings(), bytes.data(), bytes.size());
  has_excess_ = complete_ && taken < bytes.size();
  taken_ += taken;
}

// "http://host:80/path" -> "/path", with "host:80" replacing the Host field. False: neither a path
// nor such a target.
bool HttpRequestParser::take_authority() {
  if (target_.starts_with('/')) return true;
  if (target_ == "*") return request_.method == "OPTIONS";
  for (const std::string_view scheme : {"http://", "https://"}) {
    const bool has_scheme = target_.size() >= scheme.size() &&
                            std::equal(scheme.begin(), scheme.end(), target_.begin(),
                                       [](char wanted, char c) { return wanted == lower(c); });
    if (!has_scheme) continue;
    // RFC 9112 3.2.2: the authority of an absolute target takes precedence over the Host field.
    const std::size_t end = std::min(target_.find_first_of("/?#", scheme.size()), target_.size());
    request_.host = target_.substr(scheme.size(), end - scheme.size());
    target_.erase(0, end);
    if (!target_.starts_with('/')) target_.insert(0, "/");
    return is_host_field(request_.host);
  }
  return false;
}

bool HttpRequestParser::take_target() {
  if (!take_authority()) return false;
  const std::size_t question = target_.find('?');
  request_.path = target_.substr(0, question);
  request_.query = question == std::string::npos ? std::string() : target_.substr(question + 1);
  return request_.path == "*" || (decode_percent(request_.path) && is_normal_path(request_.path));
}

// RFC 9112, 6.1 and 6.3: chunked must be the last coding and occur once, HTTP/1.0 has none, and a
// length beside it is a way to make two servers split the bytes differently.
int HttpRequestParser::refusal_of_coding() const {
  if (!has_transfer_encoding_) return 0;
  std::string_view rest = transfer_encoding_;
  std::size_t count = 0;
  std::size_t chunked = 0;
  std::string last;
  while (!rest.empty()) {
    last = next_of(rest);
    ++count;
    chunked += last == "chunked" ? 1U : 0U;
  }
  if (last != "chunked" || chunked != 1 || request_.is_http10 ||
      parser_.content_length != kNoLength) {
    return http_status::kBadRequest;
  }
  return count == 1 ? 0 : http_status::kNotImplemented;  // "gzip, chunked"
}

int HttpRequestParser::refusal_of_head() {
  if (parser_.http_major != 1) return http_status::kVersionNotSupported;
  if (parser_.method == HTTP_CONNECT) return http_status::kNotImplemented;
  // HTTP/1.1 requires a Host field, and the access checks compare it. Only HTTP/1.0 may omit it.
  const bool has_host =
      is_host_field(request_.host) || (request_.is_http10 && request_.host.empty());
  if (!has_host || !take_target()) return http_status::kBadRequest;
  if (const int refusal = refusal_of_coding(); refusal != 0) return refusal;
  if (parser_.content_length != kNoLength && parser_.content_length > max_body_bytes_) {
    return http_status::kContentTooLarge;  // before any of it is stored
  }
  std::string_view expected = request_.expect;
  return expects_continue() && next_of(expected) != "100-continue" ? http_status::kExpectationFailed
                                                                   : 0;
}

int HttpRequestParser::on_head_end() {
  head_complete_ = true;
  for (const KeptField& field : kKeptFields) {
    std::string& value = request_.*field.member;
    value.resize(value.find_last_not_of(" \t") + 1);  // http_parser keeps blanks after a value
  }
  request_.method = http_method_str(static_cast<http_method>(parser_.method));
  request_.is_http10 = parser_.http_major == 1 && parser_.http_minor == 0;
  refusal_ = refusal_of_head();
  if (refusal_ != 0) return -1;
  parser_.upgrade = 0;  // an offer of another protocol is ignored
  is_chunked_ = has_transfer_encoding_;
  return is_chunked_ ? 1 : 0;  // 1: http_parser reads no body
}

int HttpRequestParser::feed_chunks(std::string_view bytes) {
  const std::size_t taken = chunks_.feed(bytes, request_.body);
  taken_ += taken;
  complete_ = chunks_.complete();
  has_excess_ = complete_ && taken < bytes.size();
  refusal_ = chunks_.refusal();
  return refusal_;
}

int HttpRequestParser::on_body(std::string_view text) {
  // Compares by subtraction, which cannot overflow.
  if (text.size() > max_body_bytes_ - request_.body.size()) {
    refusal_ = http_status::kContentTooLarge;
    return -1;
  }
  request_.body.append(text);
  return 0;
}

int HttpRequestParser::feed(std::string_view bytes) {
  taken_ = 0;
  if (complete_) {
    has_excess_ = has_excess_ || !bytes.empty();
    return 0;
  }
  if (is_chunked_) return feed_chunks(bytes);
  const std::size_t fine = lines_.ended() ? bytes.size() : lines_.read(bytes);
  // Mistakes before that byte are reported as such, however the bytes are split.
  execute(bytes.substr(0, fine));
  if (refusal_ != 0) return refusal_;
  const http_errno error = HTTP_PARSER_ERRNO(&parser_);
  // An unknown method is reported as such, because clients handle 501 differently from 400.
  if (error == HPE_INVALID_METHOD) return http_status::kNotImplemented;
  if (error != HPE_OK && error != HPE_PAUSED) return http_status::kBadRequest;
  // http_parser has stopped at the end of the head; what follows it belongs to the chunks.
  if (is_chunked_) return feed_chunks(bytes.substr(taken_));
  if (fine == bytes.size()) return 0;
  return lines_.too_long() ? http_status::kHeadTooLarge : http_status::kBadRequest;
}

}  // namespace disttf::net
