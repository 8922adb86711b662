#include "net/http/http_client.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "net/http/http_connection.h"
#include "net/http/http_open.h"
#include "net/http/http_response.h"
#include "net/http/http_status.h"
#include "net/wire/text.h"

namespace disttf::net {
namespace {

constexpr std::size_t kReadBytes = 64 * 1024;  // a few packets' worth; larger gains nothing here

bool is_redirect(int status) {
  return status == http_status::kMovedPermanently || status == http_status::kFound ||
         status == http_status::kSeeOther || status == http_status::kTemporaryRedirect ||
         status == http_status::kPermanentRedirect;
}

// One http_get(). The steps return false when the transfer is over; outcome_ then has the reason.
class Transfer {
 public:
  Transfer(const HttpRequest& request, HttpSink& sink, const Interrupt& interrupt)
      : request_(request),
        limits_{.connect_timeout = request.connect_timeout,
                .stall_timeout = request.stall_timeout,
                .deadline = request.deadline},
        sink_(sink),
        interrupt_(interrupt),
        url_(request.url) {}

  HttpOutcome run();

 private:
  bool follow_redirects();
  bool open();
  bool request_head();
  bool redirect();
  bool accept_head();
  bool accept_range(HttpBodyInfo& info);
  bool read_body();
  bool deliver();
  bool end_of_body(const std::error_code& error);
  std::string request_text() const;
  std::string position_text() const;

  bool fail(std::error_code error, const std::string& why);
  bool fail(const HttpFailure& failure) { return fail(failure.error, failure.why); }

  const HttpRequest& request_;
  const HttpLimits limits_;
  HttpSink& sink_;
  const Interrupt& interrupt_;
  Url url_;  // of the current hop
  std::vector<Url> visited_;
  std::optional<Proxy> proxy_;  // of the current hop
  std::optional<HttpConnection> connection_;
  std::optional<HttpResponseParser> parser_;
  HttpBodyInfo info_;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(kReadBytes);
  std::vector<std::span<const std::byte>> body_;  // views of buffer_ that are not delivered yet
  HttpOutcome outcome_;
};

HttpOutcome Transfer::run() {
  if (follow_redirects() && accept_head() && read_body()) outcome_.stage = HttpStage::kDone;
  return std::move(outcome_);
}

bool Transfer::fail(std::error_code error, const std::string& why) {
  outcome_.error = error;
  outcome_.sentence = to_string(url_);
  if (!visited_.empty()) outcome_.sentence += " (redirected from " + to_string(request_.url) + ")";
  outcome_.sentence += ": " + why;
  return false;
}

// Until a response that is no redirect.
bool Transfer::follow_redirects() {
  for (;;) {
    if (!open() || !request_head()) return false;
    if (!is_redirect(parser_->head().status)) return true;
    if (!redirect()) return false;
  }
}

bool Transfer::redirect() {
  const std::string& location = parser_->head().location;
  std::string why;
  const std::optional<Url> next = join_url(url_, location, why);
  if (location.empty() || !next) {
    return fail(HttpError::kBadRedirect, "the redirect's Location " + net::quoted(location) + " " +
                                             (location.empty() ? "is empty" : why));
  }
  // A transfer that began with https must not continue unencrypted.
  if (url_.scheme == Scheme::kHttps && next->scheme == Scheme::kHttp) {
    return fail(
        HttpError::kInsecureRedirect,
        "it redirects from https to " + net::quoted(to_string(*next)) + ", which is refused");
  }
  // From here on request_text() sends no token.
  visited_.push_back(url_);
  // A circle is reported as such, although the limit would also end it.
  if (std::ranges::find(visited_, *next) != visited_.end()) {
    return fail(HttpError::kTooManyRedirects,
                "it redirects in a circle, back to " + net::quoted(to_string(*next)));
  }
  if (visited_.size() > static_cast<std::size_t>(std::max(request_.max_redirects, 0))) {
    return fail(HttpError::kTooManyRedirects, "it is one more redirect after the " +
                                                  std::to_string(request_.max_redirects) +
                                                  " that are followed");
  }
  url_ = *next;
  outcome_.stage = HttpStage::kConnect;
  return true;
}

// A new connection for each hop, because it may lead to another host or proxy.
bool Transfer::open() {
  proxy_ = choose_proxy(request_.proxy, url_);
  connection_.emplace(interrupt_);
  const auto failure = open_http(*connection_, url_, proxy_, request_.ca_file, limits_);
  return failure ? fail(*failure) : true;
}

std::string Transfer::request_text() const {
  const bool absolute = proxy_ && url_.scheme == Scheme::kHttp;
  std::string text = "GET " + (absolute ? to_string(url_) : url_.target) +
                     " HTTP/1.1\r\nHost: " + authority(url_) +
                     // "identity" and "close": the file's bytes must arrive unchanged, and the end
                     // of the connection ends the body.
                     "\r\nUser-Agent: disttf\r\nAccept: */*\r\nAccept-Encoding: identity\r\n"
                     "Connection: close\r\n";
  // The tunnel of an https request has sent these credentials already; the server must not get
  // them.
  if (absolute && !proxy_->authorization.empty()) {
    text += "Proxy-Authorization: " + proxy_->authorization + "\r\n";
  }
  // A redirect may lead to another server, which must not get the token.
  if (!request_.token.empty() && visited_.empty()) {
    text += "Authorization: Bearer " + request_.token + "\r\n";
  }
  if (request_.resume_from > 0) {
    text += "Range: bytes=" + std::to_string(request_.resume_from) + "-\r\n";
  }
  return text + "\r\n";
}

// Sends the request and reads the response's header; body bytes that came with it stay in body_.
bool Transfer::request_head() {
  outcome_.stage = HttpStage::kResponse;
  const Deadline deadline = within(limits_, request_.stall_timeout);
  if (const auto error = connection_->write(request_text(), deadline)) {
    return fail(io_failure(limits_, error, "sending the request", HttpError::kStalled,
                           request_.stall_timeout));
  }
  parser_.emplace(HttpResponseParser::Request::kGet);
  const auto failure = read_http_head(*connection_, *parser_, buffer_, body_, deadline, limits_);
  return failure ? fail(*failure) : true;
}

// Checks that the header announces a usable body, and passes it to the sink.
bool Transfer::accept_head() {
  const HttpHead& head = parser_->head();
  if (head.status == http_status::kRangeNotSatisfiable) {
    return fail(HttpError::kRangeNotSatisfiable, "the server has no bytes from " +
                                                     std::to_string(request_.resume_from) +
                                                     " on (it answered " + status_text(head) + ")");
  }
  // The status precedes the encodings, because an error page may be compressed as well.
  if (head.status != http_status::kOk && head.status != http_status::kPartialContent) {
    return fail(HttpError::kBadStatus, "the server answered " + status_text(head));
  }
  // A compressed body would have other bytes and another length than the file.
  if (!head.content_encoding.empty() && head.content_encoding != "identity") {
    return fail(HttpError::kEncodedBody, "the server sent Content-Encoding " +
                                             net::quoted(head.content_encoding) +
                                             " though none was asked for");
  }
  if (!head.transfer_encoding.empty() && head.transfer_encoding != "chunked") {
    return fail(HttpError::kEncodedBody, "the server sent Transfer-Encoding " +
                                             net::quoted(head.transfer_encoding) +
                                             "; only chunked is supported");
  }
  info_.accepts_ranges =
      head.status == http_status::kPartialContent || head.accept_ranges == "bytes";
  info_.total_bytes = head.content_length;
  if (head.status == http_status::kPartialContent && !accept_range(info_)) return false;
  // Before on_header(), so that the sink creates nothing for a body that is refused.
  if (info_.total_bytes && *info_.total_bytes > request_.max_bytes) {
    return fail(HttpError::kTooLarge, "it has " + std::to_string(*info_.total_bytes) +
                                          " bytes; at most " + std::to_string(request_.max_bytes) +
                                          " are accepted");
  }
  outcome_.stage = HttpStage::kBody;
  if (const auto error = sink_.on_header(info_)) return fail(error, error.message());
  return true;
}

// A 206 must have the requested range: from there to the end, with the announced length.
bool Transfer::accept_range(HttpBodyInfo& info) {
  const HttpHead& head = parser_->head();
  const std::optional<ContentRange> range = read_content_range(head.content_range);
  const bool expected =
      range && range->first && request_.resume_from > 0 && *range->first == request_.resume_from &&
      (!range->total || *range->last == *range->total - 1) &&
      (!head.content_length || *head.content_length - 1 == *range->last - *range->first);
  if (!expected) {
    return fail(HttpError::kBadRange, "the server sent Content-Range " +
                                          net::quoted(head.content_range) + " where bytes from " +
                                          std::to_string(request_.resume_from) +
                                          " to the end were asked for");
  }
  info.offset = *range->first;
  info.total_bytes = *range->last + 1;
  return true;
}

std::string Transfer::position_text() const {
  const std::string at = std::to_string(info_.offset + outcome_.received_bytes);
  return info_.total_bytes ? at + " of " + std::to_string(*info_.total_bytes) + " bytes"
                           : at + " bytes of an unknown total";
}

bool Transfer::read_body() {
  Deadline deadline = within(limits_, request_.stall_timeout);
  // The deadline moves only after kMinStallBytes more, so a dripping server times out.
  std::uint64_t quota = outcome_.received_bytes + kMinStallBytes;
  if (!deliver()) return false;
  while (!parser_->complete()) {
    std::size_t bytes = 0;
    // Without a length in the head, the end of the connection is what ends the body.
    if (const auto error = connection_->read_some(buffer_, bytes, deadline)) {
      return end_of_body(error);
    }
    body_.clear();
    const auto received = std::span<const std::byte>(buffer_).first(bytes);
    const std::error_code error = parser_->feed(received, body_);
    // Bytes before an error are valid and are kept, so that a later attempt can resume.
    if (!deliver()) return false;
    if (error) return fail(error, error.message() + ", after " + position_text());
    if (outcome_.received_bytes >= quota) {
      quota = outcome_.received_bytes + kMinStallBytes;
      deadline = within(limits_, request_.stall_timeout);
    }
  }
  return end_of_body({});
}

// Passes the views in body_ to the sink.
bool Transfer::deliver() {
  for (const std::span<const std::byte> bytes : body_) {
    // Checks every piece, because a server may send more than it announced.
    if (bytes.size() > request_.max_bytes - info_.offset - outcome_.received_bytes) {
      return fail(HttpError::kTooLarge, "it sends more than the " +
                                            std::to_string(request_.max_bytes) +
                                            " bytes that are accepted");
    }
    if (const auto error = sink_.on_data(bytes)) return fail(error, error.message());
    outcome_.received_bytes += bytes.size();
  }
  body_.clear();
  return true;
}

// Called when the body is complete, or `error` ended the connection: checks that all of it arrived.
bool Transfer::end_of_body(const std::error_code& error) {
  if (error == std::errc::operation_canceled || error == std::errc::timed_out) {
    return fail(
        io_failure(limits_, error,
                   "the next " + std::to_string(kMinStallBytes) + " bytes after " + position_text(),
                   HttpError::kStalled, request_.stall_timeout));
  }
  // A TCP reset or a TLS cut may hide missing bytes, so only an orderly end can complete a body.
  if (error && !HttpConnection::is_orderly_end(error)) {
    return fail(HttpError::kShortBody,
                "the connection broke after " + position_text() + " (" + error.message() + ")");
  }
  const std::uint64_t end = info_.offset + outcome_.received_bytes;
  if (parser_->finish() || (info_.total_bytes && end != *info_.total_bytes)) {
    return fail(HttpError::kShortBody, "the connection was closed after " + position_text());
  }
  return true;
}

}  // namespace

HttpOutcome http_get(const HttpRequest& request, HttpSink& sink, const Interrupt& interrupt) {
  return Transfer(request, sink, interrupt).run();
}

}  // namespace disttf::net
