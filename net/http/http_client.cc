#include "net/http/http_client.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "net/http/http_session.h"
#include "net/http/http_status.h"
#include "net/wire/text.h"

namespace disttf::net {
namespace {

bool is_redirect(int status) {
  return status == http_status::kMovedPermanently || status == http_status::kFound ||
         status == http_status::kSeeOther || status == http_status::kTemporaryRedirect ||
         status == http_status::kPermanentRedirect;
}

// One http_get().
class Download final : public HttpReceiver {
 public:
  Download(const HttpRequest& request, HttpSink& sink, const Interrupt& interrupt)
      : request_(request),
        sink_(sink),
        session_({.connect_timeout = request.connect_timeout,
                  .stall_timeout = request.stall_timeout,
                  .deadline = request.deadline},
                 request.ca_file, request.proxy, interrupt),
        url_(request.url) {}

  HttpOutcome run();

  void on_connected() override { outcome_.stage = HttpStage::kResponse; }
  MaybeFailure on_head(const HttpHead& head) override;
  MaybeFailure on_data(std::span<const std::byte> bytes) override;
  std::string position() const override;

 private:
  HttpQuestion question() const;
  MaybeFailure redirect(const std::string& location);
  MaybeFailure accept_range(const HttpHead& head);

  const HttpRequest& request_;
  HttpSink& sink_;
  HttpSession session_;
  Url url_;  // of the current hop
  std::vector<Url> visited_;
  bool is_redirected_ = false;  // the last answer has changed url_
  HttpBodyInfo info_;
  HttpOutcome outcome_;
};

HttpOutcome Download::run() {
  MaybeFailure failure;
  do {
    outcome_.stage = HttpStage::kConnect;
    is_redirected_ = false;
    failure = session_.ask(question(), *this);
  } while (is_redirected_);
  const std::uint64_t end = info_.offset + outcome_.received_bytes;
  if (!failure && info_.total_bytes && end != *info_.total_bytes) {
    failure = HttpFailure{HttpError::kShortBody, "the connection was closed after " + position()};
  }
  if (!failure) {
    outcome_.stage = HttpStage::kDone;
    return std::move(outcome_);
  }
  outcome_.error = failure->error;
  outcome_.sentence = to_string(url_);
  if (!visited_.empty()) outcome_.sentence += " (redirected from " + to_string(request_.url) + ")";
  outcome_.sentence += ": " + failure->why;
  return std::move(outcome_);
}

HttpQuestion Download::question() const {
  // A redirect may lead to another host or proxy, and the end of the connection ends a body without
  // a length, so no connection is used twice.
  HttpQuestion question{.url = url_,
                        .fields = {{"Accept", "*/*"}, {"Connection", "close"}},
                        .body = {},
                        .least_bytes = kMinStallBytes};
  // A redirect may lead to another server, which must not get the token.
  if (!request_.token.empty() && visited_.empty()) {
    question.fields.emplace_back("Authorization", "Bearer " + request_.token);
  }
  if (request_.resume_from > 0) {
    question.fields.emplace_back("Range", "bytes=" + std::to_string(request_.resume_from) + "-");
  }
  return question;
}

MaybeFailure Download::redirect(const std::string& location) {
  std::string why;
  const std::optional<Url> next = join_url(url_, location, why);
  if (location.empty() || !next) {
    return HttpFailure{HttpError::kBadRedirect, "the redirect's Location " + net::quoted(location) +
                                                    " " + (location.empty() ? "is empty" : why)};
  }
  // A transfer that began with https must not continue unencrypted.
  if (url_.scheme == Scheme::kHttps && next->scheme == Scheme::kHttp) {
    return HttpFailure{
        HttpError::kInsecureRedirect,
        "it redirects from https to " + net::quoted(to_string(*next)) + ", which is refused"};
  }
  visited_.push_back(url_);
  // A circle is reported as such, although the limit would also end it.
  if (std::ranges::find(visited_, *next) != visited_.end()) {
    return HttpFailure{HttpError::kTooManyRedirects,
                       "it redirects in a circle, back to " + net::quoted(to_string(*next))};
  }
  if (visited_.size() > static_cast<std::size_t>(std::max(request_.max_redirects, 0))) {
    return HttpFailure{HttpError::kTooManyRedirects, "it is one more redirect after the " +
                                                         std::to_string(request_.max_redirects) +
                                                         " that are followed"};
  }
  url_ = *next;
  is_redirected_ = true;
  return HttpFailure{};  // the body of a redirect is not read
}

// Checks that the header announces a usable body, and passes it to the sink.
MaybeFailure Download::on_head(const HttpHead& head) {
  if (is_redirect(head.status)) return redirect(head.location);
  if (head.status == http_status::kRangeNotSatisfiable) {
    return HttpFailure{HttpError::kRangeNotSatisfiable,
                       "the server has no bytes from " + std::to_string(request_.resume_from) +
                           " on (it answered " + status_text(head) + ")"};
  }
  // The status precedes the encodings, because an error page may be compressed as well.
  if (head.status != http_status::kOk && head.status != http_status::kPartialContent) {
    return HttpFailure{HttpError::kBadStatus, "the server answered " + status_text(head)};
  }
  // A compressed body would have other bytes and another length than the file.
  if (!head.content_encoding.empty() && head.content_encoding != "identity") {
    return HttpFailure{HttpError::kEncodedBody, "the server sent Content-Encoding " +
                                                    net::quoted(head.content_encoding) +
                                                    " though none was asked for"};
  }
  if (!head.transfer_encoding.empty() && head.transfer_encoding != "chunked") {
    return HttpFailure{HttpError::kEncodedBody, "the server sent Transfer-Encoding " +
                                                    net::quoted(head.transfer_encoding) +
                                                    "; only chunked is supported"};
  }
  info_.accepts_ranges =
      head.status == http_status::kPartialContent || head.accept_ranges == "bytes";
  info_.total_bytes = head.content_length;
  if (head.status == http_status::kPartialContent) {
    if (auto failure = accept_range(head)) return failure;
  }
  // Before on_header(), so that the sink creates nothing for a body that is refused.
  if (info_.total_bytes && *info_.total_bytes > request_.max_bytes) {
    return HttpFailure{HttpError::kTooLarge,
                       "it has " + std::to_string(*info_.total_bytes) + " bytes; at most " +
                           std::to_string(request_.max_bytes) + " are accepted"};
  }
  outcome_.stage = HttpStage::kBody;
  if (const auto error = sink_.on_header(info_)) return HttpFailure{error, error.message()};
  return std::nullopt;
}

// A 206 must have the requested range: from there to the end, with the announced length.
MaybeFailure Download::accept_range(const HttpHead& head) {
  const std::optional<ContentRange> range = read_content_range(head.content_range);
  const bool expected =
      range && range->first && request_.resume_from > 0 && *range->first == request_.resume_from &&
      (!range->total || *range->last == *range->total - 1) &&
      (!head.content_length || *head.content_length - 1 == *range->last - *range->first);
  if (!expected) {
    return HttpFailure{HttpError::kBadRange,
                       "the server sent Content-Range " + net::quoted(head.content_range) +
                           " where bytes from " + std::to_string(request_.resume_from) +
                           " to the end were asked for"};
  }
  info_.offset = *range->first;
  info_.total_bytes = *range->last + 1;
  return std::nullopt;
}

MaybeFailure Download::on_data(std::span<const std::byte> bytes) {
  // Checks every piece, because a server may send more than it announced.
  if (bytes.size() > request_.max_bytes - info_.offset - outcome_.received_bytes) {
    return HttpFailure{HttpError::kTooLarge, "it sends more than the " +
                                                 std::to_string(request_.max_bytes) +
                                                 " bytes that are accepted"};
  }
  if (const auto error = sink_.on_data(bytes)) return HttpFailure{error, error.message()};
  outcome_.received_bytes += bytes.size();
  return std::nullopt;
}

std::string Download::position() const {
  const std::string at = std::to_string(info_.offset + outcome_.received_bytes);
  return info_.total_bytes ? at + " of " + std::to_string(*info_.total_bytes) + " bytes"
                           : at + " bytes of an unknown total";
}

}  // namespace

HttpOutcome http_get(const HttpRequest& request, HttpSink& sink, const Interrupt& interrupt) {
  return Download(request, sink, interrupt).run();
}

}  // namespace disttf::net
