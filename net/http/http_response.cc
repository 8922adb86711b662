#include "net/http/http_response.h"

#include <limits>

#include "net/wire/text.h"

namespace disttf::net {
std::optional<ContentRange> read_content_range(std::string_view text) {
  static constexpr std::string_view kUnit = "bytes ";
  const std::size_t slash = text.find('/');
  if (!text.starts_with(kUnit) || slash == std::string_view::npos) return std::nullopt;
  const std::string_view range = text.substr(kUnit.size(), slash - kUnit.size());
  const std::string_view total = text.substr(slash + 1);
  ContentRange result;
  if (total != "*") {
    result.total = whole_number(total);
    if (!result.total) return std::nullopt;
  }
  if (range == "*") return result;
  const std::size_t dash = range.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  result.first = whole_number(range.substr(0, dash));
  result.last = whole_number(range.substr(dash + 1));
  if (!result.first || !result.last || *result.last < *result.first) return std::nullopt;
  // A last byte beyond the total contradicts itself.
  if (result.total && *result.last >= *result.total) return std::nullopt;
  return result;
}

HttpResponseParser::HttpResponseParser(Request request) : request_(request) {
  http_parser_init(&parser_, HTTP_RESPONSE);
  parser_.data = this;
}

HttpResponseParser& HttpResponseParser::self(http_parser* parser) noexcept {
  return *static_cast<HttpResponseParser*>(parser->data);
}

const http_parser_settings& HttpResponseParser::settings() noexcept {
  static const http_parser_settings kSettings = [] {
    http_parser_settings settings;
    http_parser_settings_init(&settings);
    settings.on_status = [](http_parser* parser, const char* text, std::size_t size) {
      self(parser).head_.reason.append(text, size);
      return 0;
    };
    settings.on_header_field = [](http_parser* parser, const char* text, std::size_t size) {
      self(parser).append_to_name({text, size});
      return 0;
    };
    settings.on_header_value = [](http_parser* parser, const char* text, std::size_t size) {
      self(parser).append_to_value({text, size});
      return 0;
    };
    settings.on_headers_complete = [](http_parser* parser) {
      return self(parser).on_headers_complete();
    };
    settings.on_body = [](http_parser* parser, const char* text, std::size_t size) {
      self(parser).body_->push_back(std::as_bytes(std::span(text, size)));
      return 0;
    };
    settings.on_message_complete = [](http_parser* parser) {
      return self(parser).on_message_complete();
    };
    return settings;
  }();
  return kSettings;
}

std::string* HttpResponseParser::field_named(std::string_view name) noexcept {
  if (name == "location") return &head_.location;
  if (name == "content-range") return &head_.content_range;
  if (name == "content-encoding") return &head_.content_encoding;
  if (name == "transfer-encoding") return &head_.transfer_encoding;
  if (name == "accept-ranges") return &head_.accept_ranges;
  if (name == "etag") return &head_.etag;
  if (name == "date") return &head_.date;
  if (name == "last-modified") return &head_.last_modified;
  if (name == "retry-after") return &head_.retry_after;
  if (name == "x-amz-bucket-region") return &head_.bucket_region;
  if (name == "x-goog-generation") return &head_.generation;
  if (name == "x-goog-hash") return &head_.checksums;
  if (name == "content-type") return &head_.content_type;
  return nullptr;
}

// Names and values arrive in pieces, split wherever the bytes were. Those after the head are the
// trailer of a chunked body, which is ignored.
void HttpResponseParser::append_to_name(std::string_view text) {
  if (head_complete_) return;
  if (name_complete_) name_.clear();
  name_complete_ = false;
  for (const char c : text) name_ += lower(c);
}

void HttpResponseParser::append_to_value(std::string_view text) {
  if (head_complete_) return;
  if (!name_complete_) {
    name_complete_ = true;
    value_ = field_named(name_);
    // Fields of the same name form one list (RFC 9110, 5.3).
    if (value_ != nullptr && !value_->empty()) *value_ += ", ";
  }
  if (value_ != nullptr) value_->append(text);
}

// 101 is not interim: it would begin another protocol, and no further answer follows.
bool HttpResponseParser::interim() const noexcept {
  return parser_.status_code / 100 == 1 && parser_.status_code != 101;
}

int HttpResponseParser::on_headers_complete() {
  static constexpr int kHasBody = 0;
  static constexpr int kNoBody = 1;
  static constexpr int kTunnelBegins = 2;
  head_.status = parser_.status_code;
  // http_parser's value for "not announced".
  if (parser_.content_length != std::numeric_limits<std::uint64_t>::max()) {
    head_.content_length = parser_.content_length;
  }
  head_complete_ = !interim();
  if (!head_complete_) return kNoBody;  // whatever its fields announce
  if (request_ == Request::kHead) return kNoBody;
  const bool tunnel = request_ == Request::kConnect && head_.status / 100 == 2;
  return tunnel ? kTunnelBegins : kHasBody;
}

int HttpResponseParser::on_message_complete() {
  if (!head_complete_) {  // an interim response: the final one follows
    head_ = {};
    name_complete_ = true;
    value_ = nullptr;
    return 0;
  }
  complete_ = true;
  keeps_alive_ = http_should_keep_alive(&parser_) != 0;
  http_parser_pause(&parser_, 1);  // what follows is not parsed here
  return 0;
}

std::error_code HttpResponseParser::feed(std::span<const std::byte> bytes,
                                         std::vector<std::span<const std::byte>>& body) {
  if (complete_) {
    excess_bytes_ += bytes.size();
    return {};
  }
  if (bytes.empty()) return {};  // http_parser treats empty input as the end
  const bool in_head = !head_complete_;
  body_ = &body;
  // http_parser reads char; a byte is a char.
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  const std::size_t taken = http_parser_execute(&parser_, &settings(), text, bytes.size());
  body_ = nullptr;
  // Counts interim responses as well, so a server cannot send them without end.
  if (in_head && !head_complete_) head_bytes_ += bytes.size();
  const http_errno error = HTTP_PARSER_ERRNO(&parser_);
  if (error == HPE_HEADER_OVERFLOW || head_bytes_ > kMaxHttpHeadBytes) {
    return HttpError::kHeaderTooLarge;
  }
  if (error != HPE_OK && error != HPE_PAUSED) return HttpError::kBadResponse;
  // http_parser accepts other major versions.
  if (head_complete_ && parser_.http_major != 1) return HttpError::kBadResponse;
  if (complete_) excess_bytes_ += bytes.size() - taken;
  return {};
}

std::error_code HttpResponseParser::finish() {
  if (complete_) return {};
  if (!head_complete_) return HttpError::kBadResponse;
  std::vector<std::span<const std::byte>> none;
  body_ = &none;
  // Empty input means the end, which completes a body that has neither a length nor chunks.
  http_parser_execute(&parser_, &settings(), nullptr, 0);
  body_ = nullptr;
  if (complete_) return {};
  return HttpError::kShortBody;
}

}  // namespace disttf::net
