#include "net/http/http_session.h"

#include <algorithm>
#include <string_view>

#include "net/wire/text.h"

namespace disttf::net {
namespace {

// Large enough that an object of some MiB does not take thousands of calls.
constexpr std::size_t kSessionReadBytes = 256 * 1024;
// A body is sent in pieces; each has the stall timeout for itself.
constexpr std::size_t kSessionWriteBytes = std::size_t{1} << 20U;

bool is_same_peer(const Url& one, const Url& other) {
  return one.scheme == other.scheme && one.host == other.host && one.port == other.port;
}

std::string seconds_text(std::chrono::milliseconds time) {
  if (time.count() % 1000 == 0) return std::to_string(time.count() / 1000) + " s";
  return std::to_string(time.count()) + " ms";
}

Deadline within(const HttpLimits& limits, std::chrono::milliseconds time) {
  const Deadline deadline = Clock::now() + time;
  return limits.deadline ? std::min(deadline, *limits.deadline) : deadline;
}

// Translates an error of the connection. A time-out becomes `on_timeout`, unless it was the
// deadline. `limit`: the time that the operation had.
HttpFailure io_failure(const HttpLimits& limits, std::error_code error, const std::string& what,
                       HttpError on_timeout, std::chrono::milliseconds limit) {
  if (error == std::errc::operation_canceled) return {error, what + " was interrupted"};
  if (error != std::errc::timed_out) return {error, what + " failed: " + error.message()};
  // The step's limit and the overall deadline end in the same error; the clock tells them apart.
  if (limits.deadline && Clock::now() >= *limits.deadline) {
    return {error, what + " timed out: no time is left"};
  }
  return {on_timeout, what + " took longer than " + seconds_text(limit)};
}

// Reads until `parser` has a head. `buffer` receives the bytes; `body` gets views into it of the
// body bytes that came with the head.
MaybeFailure read_http_head(HttpConnection& connection, HttpResponseParser& parser,
                            std::span<std::byte> buffer,
                            std::vector<std::span<const std::byte>>& body, Deadline deadline,
                            const HttpLimits& limits) {
  while (!parser.head_complete()) {
    std::size_t bytes = 0;
    const std::error_code broken = connection.read_some(buffer, bytes, deadline);
    if (HttpConnection::is_orderly_end(broken)) {
      return HttpFailure{HttpError::kBadResponse, "the connection was closed without a response"};
    }
    if (broken) {
      return io_failure(limits, broken, "waiting for the response", HttpError::kStalled,
                        limits.stall_timeout);
    }
    const auto received = std::span<const std::byte>(buffer).first(bytes);
    if (const auto error = parser.feed(received, body)) {
      // A few bytes show what answered instead of an HTTP server, such as TLS or SSH.
      const auto shown = received.first(std::min<std::size_t>(received.size(), 32));
      return HttpFailure{
          error, error.message() + "; it begins with " +
                     net::quoted({reinterpret_cast<const char*>(shown.data()), shown.size()})};
    }
  }
  return std::nullopt;
}

MaybeFailure open_tunnel(HttpConnection& connection, const Url& url, const Proxy& proxy,
                         Deadline deadline, const HttpLimits& limits) {
  std::string text = "CONNECT " + host_and_port(url) + " HTTP/1.1\r\nHost: " + host_and_port(url) +
                     "\r\nUser-Agent: disttf\r\n";
  if (!proxy.authorization.empty()) text += "Proxy-Authorization: " + proxy.authorization + "\r\n";
  if (const auto error = connection.write(text + "\r\n", deadline)) {
    return io_failure(limits, error, "asking the proxy for a tunnel", HttpError::kConnectTimeout,
                      limits.connect_timeout);
  }
  HttpResponseParser parser(HttpResponseParser::Request::kConnect);
  std::vector<std::byte> buffer(kMaxHttpHeadBytes);
  std::vector<std::span<const std::byte>> body;
  if (auto failure = read_http_head(connection, parser, buffer, body, deadline, limits)) {
    return failure;
  }
  if (parser.head().status / 100 != 2) {
    return HttpFailure{HttpError::kProxyRefused,
                       "the proxy " + proxy.host + " port " + std::to_string(proxy.port) +
                           " refused the tunnel with " + status_text(parser.head())};
  }
  // In TLS the client sends first. Bytes before that would be lost to the handshake.
  if (parser.excess_bytes() == 0) return std::nullopt;
  return HttpFailure{HttpError::kBadResponse,
                     "the proxy sent data into the tunnel ahead of the server"};
}

// Keeps the whole body.
class WholeAnswer final : public HttpReceiver {
 public:
  WholeAnswer(std::size_t max_bytes, HttpAnswer& answer) : max_bytes_(max_bytes), answer_(answer) {}

  MaybeFailure on_head(const HttpHead& head) override {
    answer_.head = head;
    // The announced length is not relied on: the reservation is bounded by what is accepted.
    answer_.body.reserve(static_cast<std::size_t>(
        std::min<std::uint64_t>(head.content_length.value_or(0), max_bytes_)));
    return std::nullopt;
  }
  MaybeFailure on_data(std::span<const std::byte> bytes) override {
    if (bytes.size() > max_bytes_ - answer_.body.size()) {
      return HttpFailure{
          HttpError::kTooLarge,
          "it sends more than the " + std::to_string(max_bytes_) + " bytes that are accepted"};
    }
    answer_.body.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return std::nullopt;
  }
  std::string position() const override {
    return std::to_string(answer_.body.size()) + " bytes of the answer";
  }

 private:
  const std::size_t max_bytes_;
  HttpAnswer& answer_;
};

}  // namespace

std::string status_text(const HttpHead& head) {
  const std::string status = std::to_string(head.status);
  return head.reason.empty() ? status : status + " (" + one_line(cut_utf8(head.reason, 80)) + ")";
}

HttpSession::HttpSession(HttpLimits limits, std::string ca_file, ProxySettings proxy,
                         const Interrupt& interrupt)
    : limits_(limits),
      ca_file_(std::move(ca_file)),
      proxy_settings_(std::move(proxy)),
      interrupt_(interrupt),
      buffer_(kSessionReadBytes) {}

HttpAnswer HttpSession::ask(const HttpQuestion& question) {
  HttpAnswer answer;
  WholeAnswer receiver(question.max_answer_bytes, answer);
  // A new connection cannot be stale: a failure on it is a failure of the request.
  const bool is_old = connection_ && is_used_ && is_same_peer(peer_, question.url);
  MaybeFailure failure = ask(question, receiver);
  // Without a status the server may have closed the idle connection before it saw the request.
  const bool may_be_stale = is_old && answer.head.status == 0;
  // After a stall the server may be processing the request, so that one is not sent twice.
  if (failure && may_be_stale && failure->error != std::errc::operation_canceled &&
      failure->error != HttpError::kStalled) {
    failure = ask(question, receiver);
    answer.was_repeated = true;
  }
  if (failure) {
    answer.error = failure->error;
    answer.sentence = to_string(question.url) + ": " + failure->why;
  }
  return answer;
}

MaybeFailure HttpSession::ask(const HttpQuestion& question, HttpReceiver& receiver) {
  MaybeFailure failure = open(question);
  if (!failure) {
    receiver.on_connected();
    failure = send(question);
    const MaybeFailure unsent = failure;
    // A server that refuses a body may answer and close before it has read all of it.
    if (!unsent || (!question.body.empty() && unsent->error != std::errc::operation_canceled)) {
      failure = receive(question, receiver);
    }
    if (unsent) {
      connection_.reset();
      // Without an answer the failed send is the cause, and the failed read only its effect.
      if (failure) return unsent;
    }
  }
  if (failure) connection_.reset();
  return failure;
}

// Opens TCP, the proxy's tunnel and TLS, all within connect_timeout, unless a connection is there.
MaybeFailure HttpSession::open(const HttpQuestion& question) {
  const Url& url = question.url;
  const bool is_local = !question.socket.empty();
  if (connection_ && !is_local && is_same_peer(peer_, url)) return std::nullopt;
  proxy_ = is_local ? std::nullopt : choose_proxy(proxy_settings_, url);
  // One connection at a time: a request to another peer replaces it.
  connection_.emplace(interrupt_);
  peer_ = is_local ? Url{} : url;  // no other request takes a connection to a Unix socket
  is_used_ = false;
  const auto failed = [this](std::error_code error, const std::string& what) {
    return io_failure(limits_, error, what, HttpError::kConnectTimeout, limits_.connect_timeout);
  };
  if (is_local) {
    const auto error = connection_->connect_local(question.socket);
    return error ? MaybeFailure(failed(error, "connecting to " + question.socket)) : std::nullopt;
  }
  // One limit for connecting, the tunnel and the TLS handshake together.
  const Deadline deadline = within(limits_, limits_.connect_timeout);
  const std::string host = proxy_ ? proxy_->host : url.host;
  const std::uint16_t port = proxy_ ? proxy_->port : url.port;
  const std::string peer = (proxy_ ? "the proxy " : "") + host + " port " + std::to_string(port);
  if (const auto error = connection_->connect(host, port, deadline)) {
    return failed(error, "connecting to " + peer);
  }
  if (url.scheme == Scheme::kHttp) return std::nullopt;
  if (proxy_) {
    if (auto failure = open_tunnel(*connection_, url, *proxy_, deadline, limits_)) return failure;
  }
  // The host of the URL and not of the proxy: TLS runs through the tunnel to the server itself.
  std::string sentence;
  const auto error = connection_->start_tls(url.host, ca_file_, deadline, sentence);
  if (!error) return std::nullopt;
  if (!sentence.empty()) return HttpFailure{error, std::move(sentence)};
  return failed(error, "the TLS handshake");
}

std::string HttpSession::head_text(const HttpQuestion& question) const {
  const bool absolute = proxy_ && question.url.scheme == Scheme::kHttp;
  // "identity": the bytes of a file must arrive unchanged.
  std::string text = question.method + " " +
                     (absolute ? to_string(question.url) : question.url.target) +
                     " HTTP/1.1\r\nHost: " + authority(question.url) +
                     "\r\nUser-Agent: disttf\r\nAccept-Encoding: identity\r\n";
  // The tunnel of an https request has sent these credentials already; the server must not get
  // them.
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

MaybeFailure HttpSession::receive(const HttpQuestion& question, HttpReceiver& receiver) {
  HttpLimits limits = limits_;
  limits.stall_timeout = question.patience.value_or(limits.stall_timeout);
  HttpResponseParser parser(question.method == "HEAD" ? HttpResponseParser::Request::kHead
                                                      : HttpResponseParser::Request::kGet);
  std::vector<std::span<const std::byte>> pieces;
  Deadline deadline = within(limits, limits.stall_timeout);
  if (auto failure = read_http_head(*connection_, parser, buffer_, pieces, deadline, limits)) {
    return failure;
  }
  if (auto failure = receiver.on_head(parser.head())) return failure;
  std::error_code invalid;
  std::error_code ended;
  // The time limit covers a gap between reads and not the whole answer. It starts again only after
  // `least_bytes`, so that a dripping server times out.
  std::size_t missing = 0;
  while (true) {
    // Bytes before an error are valid and are kept, so that a later attempt can resume.
    for (const std::span<const std::byte> piece : pieces) {
      if (auto failure = receiver.on_data(piece)) return failure;
    }
    if (invalid) {
      return HttpFailure{invalid, invalid.message() + ", after " + receiver.position()};
    }
    if (parser.complete() || ended) break;
    if (missing == 0) {
      missing = question.least_bytes;
      deadline = within(limits, limits.stall_timeout);
    }
    pieces.clear();
    std::size_t bytes = 0;
    // Without a length in the head, the end of the connection is what ends the body.
    ended = connection_->read_some(buffer_, bytes, deadline);
    if (!ended) invalid = parser.feed(std::span<const std::byte>(buffer_).first(bytes), pieces);
    missing -= std::min(missing, bytes);
  }
  if (ended == std::errc::operation_canceled || ended == std::errc::timed_out) {
    return io_failure(limits, ended, "the next bytes after " + receiver.position(),
                      HttpError::kStalled, limits.stall_timeout);
  }
  // A TCP reset or a TLS cut may hide missing bytes, so only an orderly end can complete a body.
  if (ended && !HttpConnection::is_orderly_end(ended)) {
    return HttpFailure{HttpError::kShortBody, "the connection broke after " + receiver.position() +
                                                  " (" + ended.message() + ")"};
  }
  if (parser.finish()) {
    return HttpFailure{HttpError::kShortBody,
                       "the connection was closed after " + receiver.position()};
  }
  is_used_ = true;
  // Bytes behind this answer would be taken for the beginning of the next one.
  if (ended || !parser.keeps_alive() || parser.excess_bytes() > 0) connection_.reset();
  return std::nullopt;
}

namespace {

// No log is followed for longer.
constexpr std::chrono::hours kForever{24 * 365};

class LocalReceiver final : public HttpReceiver {
 public:
  explicit LocalReceiver(const OnLocalBody& on_body) : on_body_(on_body) {}

  MaybeFailure on_head(const HttpHead& head) override {
    status_ = head.status;
    on_body_(status_, {});
    return std::nullopt;
  }
  MaybeFailure on_data(std::span<const std::byte> bytes) override {
    on_body_(status_, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    return std::nullopt;
  }
  std::string position() const override { return "a part of the answer"; }

 private:
  const OnLocalBody& on_body_;
  int status_ = 0;
};

}  // namespace

std::error_code http_over_local(const LocalHttpRequest& request, const OnLocalBody& on_body) {
  const Interrupt never;
  const bool is_bounded = request.read_timeout.count() > 0;
  HttpSession session({.stall_timeout = is_bounded ? request.read_timeout : kForever}, {}, {},
                      never);
  LocalReceiver receiver(on_body);
  const MaybeFailure failure =
      session.ask({.method = request.method,
                   .url = {.host = "disttf", .port = 80, .target = request.target},
                   .socket = request.socket,
                   .fields = {{"Content-Type", "application/json"}, {"Connection", "close"}},
                   .body = std::as_bytes(std::span(request.body))},
                  receiver);
  if (!failure) return {};
  return failure->error == HttpError::kStalled ? std::make_error_code(std::errc::timed_out)
                                               : failure->error;
}

std::error_code try_local(const std::string& socket) {
  const Interrupt never;
  return HttpConnection(never).connect_local(socket);
}

}  // namespace disttf::net
