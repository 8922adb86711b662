#include "net/http/http_session.h"

#include <algorithm>
#include <string_view>

namespace disttf::net {
namespace {

// Large enough that an object of some MiB does not take thousands of calls.
constexpr std::size_t kSessionReadBytes = 256 * 1024;
// A body is sent in pieces; each has the stall timeout for itself.
constexpr std::size_t kSessionWriteBytes = std::size_t{1} << 20U;

bool is_same_peer(const Url& one, const Url& other) {
  return one.scheme == other.scheme && one.host == other.host && one.port == other.port;
}

}  // namespace

HttpSession::HttpSession(HttpLimits limits, std::string ca_file, ProxySettings proxy,
                         const Interrupt& interrupt)
    : limits_(limits),
      ca_file_(std::move(ca_file)),
      proxy_settings_(std::move(proxy)),
      interrupt_(interrupt),
      buffer_(kSessionReadBytes) {}

HttpAnswer HttpSession::ask(const HttpQuestion& question) {
  HttpAnswer answer;
  // A new connection cannot be stale: a failure on it is a failure of the request.
  const bool is_old = connection_ && is_used_ && is_same_peer(peer_, question.url);
  MaybeFailure failure = attempt(question, answer);
  // Without a status the server may have closed the idle connection before it saw the request.
  const bool may_be_stale = is_old && answer.head.status == 0;
  // After a stall the server may be processing the request, so that one is not sent twice.
  if (failure && may_be_stale && failure->error != std::errc::operation_canceled &&
      failure->error != HttpError::kStalled) {
    answer = {};
    failure = attempt(question, answer);
    answer.was_repeated = true;
  }
  if (failure) {
    connection_.reset();
    answer.error = failure->error;
    answer.sentence = to_string(question.url) + ": " + failure->why;
  }
  return answer;
}

MaybeFailure HttpSession::attempt(const HttpQuestion& question, HttpAnswer& answer) {
  if (!connection_ || !is_same_peer(peer_, question.url)) {
    proxy_ = choose_proxy(proxy_settings_, question.url);
    // One connection at a time: a request to another peer replaces it.
    connection_.emplace(interrupt_);
    peer_ = question.url;
    is_used_ = false;
    if (auto failure = open_http(*connection_, question.url, proxy_, ca_file_, limits_)) {
      return failure;
    }
  }
  MaybeFailure unsent = send(question);
  // A server that refuses a body may answer and close before it has read all of it.
  if (unsent && (question.body.empty() || unsent->error == std::errc::operation_canceled)) {
    connection_.reset();
    return unsent;
  }
  MaybeFailure failure = receive(question, answer);
  if (failure || unsent) connection_.reset();
  // Without an answer the failed send is the cause, and the failed read only its effect.
  if (failure && unsent) return unsent;
  return failure;
}

std::string HttpSession::head_text(const HttpQuestion& question) const {
  const bool absolute = proxy_ && question.url.scheme == Scheme::kHttp;
  std::string text = question.method + " " +
                     (absolute ? to_string(question.url) : question.url.target) +
                     " HTTP/1.1\r\nHost: " + authority(question.url) +
                     "\r\nUser-Agent: disttf\r\nAccept-Encoding: identity\r\n";
  if (absolute && !proxy_->authorization.empty()) {
    text += "Proxy-Authorization: " + proxy_->authorization + "\r\n";
  }
  for (const auto& [name, value] : question.fields) text += name + ": " + value + "\r\n";
  // An empty PUT or POST needs an explicit length of 0: some servers answer 411 without one.
  if (!question.body.empty() || question.method == "PUT" || question.method == "POST") {
    text += "Content-Length: " + std::to_string(question.body.size()) + "\r\n";
  }
  return text + "\r\n";
}

MaybeFailure HttpSession::send(const HttpQuestion& question) {
  const auto write = [this](std::string_view text) -> MaybeFailure {
    const auto error = connection_->write(text, within(limits_, limits_.stall_timeout));
    if (!error) return std::nullopt;
    return io_failure(limits_, error, "sending the request", HttpError::kStalled,
                      limits_.stall_timeout);
  };
  if (auto failure = write(head_text(question))) return failure;
  std::string_view rest(reinterpret_cast<const char*>(question.body.data()), question.body.size());
  while (!rest.empty()) {
    const std::string_view piece = rest.substr(0, kSessionWriteBytes);
    if (auto failure = write(piece)) return failure;
    rest.remove_prefix(piece.size());
  }
  return std::nullopt;
}

MaybeFailure HttpSession::receive(const HttpQuestion& question, HttpAnswer& answer) {
  HttpLimits limits = limits_;
  if (question.patience) limits.stall_timeout = *question.patience;
  HttpResponseParser parser(question.method == "HEAD" ? HttpResponseParser::Request::kHead
                                                      : HttpResponseParser::Request::kGet);
  std::vector<std::span<const std::byte>> pieces;
  Deadline deadline = within(limits, limits.stall_timeout);
  if (auto failure = read_http_head(*connection_, parser, buffer_, pieces, deadline, limits)) {
    return failure;
  }
  answer.head = parser.head();
  if (answer.head.content_length) {
    // The announced length is not relied on: the reservation is bounded by what is accepted.
    answer.body.reserve(static_cast<std::size_t>(
        std::min<std::uint64_t>(*answer.head.content_length, question.max_answer_bytes)));
  }
  std::error_code ended;
  while (true) {
    for (const std::span<const std::byte> piece : pieces) {
      if (piece.size() > question.max_answer_bytes - answer.body.size()) {
        return HttpFailure{HttpError::kTooLarge, "it sends more than the " +
                                                     std::to_string(question.max_answer_bytes) +
                                                     " bytes that are accepted"};
      }
      answer.body.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    }
    if (parser.complete() || ended) break;
    pieces.clear();
    std::size_t bytes = 0;
    ended = connection_->read_some(buffer_, bytes, deadline);
    if (ended) continue;
    // The time limit covers a gap between two reads and not the whole answer.
    deadline = within(limits, limits.stall_timeout);
    if (parser.feed(std::span<const std::byte>(buffer_).first(bytes), pieces)) {
      return HttpFailure{HttpError::kBadResponse, "the body is not valid HTTP"};
    }
  }
  if (ended && !HttpConnection::is_orderly_end(ended)) {
    return io_failure(limits, ended, "the rest of the answer", HttpError::kStalled,
                      limits.stall_timeout);
  }
  if (parser.finish()) {
    return HttpFailure{HttpError::kShortBody, "the connection was closed after " +
                                                  std::to_string(answer.body.size()) +
                                                  " bytes of the answer"};
  }
  is_used_ = true;
  // Bytes behind this answer would be taken for the beginning of the next one.
  if (ended || !parser.keeps_alive() || parser.excess_bytes() > 0) connection_.reset();
  return std::nullopt;
}

}  // namespace disttf::net
