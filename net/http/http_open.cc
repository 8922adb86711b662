#include "net/http/http_open.h"

#include <algorithm>
#include <utility>

#include "net/wire/text.h"

namespace disttf::net {
namespace {

std::string seconds_text(std::chrono::milliseconds time) {
  if (time.count() % 1000 == 0) return std::to_string(time.count() / 1000) + " s";
  return std::to_string(time.count()) + " ms";
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

}  // namespace

std::string status_text(const HttpHead& head) {
  const std::string status = std::to_string(head.status);
  return head.reason.empty() ? status : status + " (" + one_line(cut_utf8(head.reason, 80)) + ")";
}

Deadline within(const HttpLimits& limits, std::chrono::milliseconds time) {
  const Deadline deadline = Clock::now() + time;
  return limits.deadline ? std::min(deadline, *limits.deadline) : deadline;
}

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

MaybeFailure open_http(HttpConnection& connection, const Url& url,
                       const std::optional<Proxy>& proxy, const std::string& ca_file,
                       const HttpLimits& limits) {
  // One limit for connecting, the tunnel and the TLS handshake together.
  const Deadline deadline = within(limits, limits.connect_timeout);
  const std::string host = proxy ? proxy->host : url.host;
  const std::uint16_t port = proxy ? proxy->port : url.port;
  const std::string peer = (proxy ? "the proxy " : "") + host + " port " + std::to_string(port);
  const auto failed = [&](std::error_code error, const std::string& what) {
    return io_failure(limits, error, what, HttpError::kConnectTimeout, limits.connect_timeout);
  };
  if (const auto error = connection.connect(host, port, deadline)) {
    return failed(error, "connecting to " + peer);
  }
  if (url.scheme == Scheme::kHttp) return std::nullopt;
  if (proxy) {
    if (auto failure = open_tunnel(connection, url, *proxy, deadline, limits)) return failure;
  }
  // The host of the URL and not of the proxy: TLS runs through the tunnel to the server itself.
  std::string sentence;
  const auto error = connection.start_tls(url.host, ca_file, deadline, sentence);
  if (!error) return std::nullopt;
  if (!sentence.empty()) return HttpFailure{error, std::move(sentence)};
  return failed(error, "the TLS handshake");
}

MaybeFailure read_http_head(HttpConnection& connection, HttpResponseParser& parser,
                            std::span<std::byte> buffer,
                            std::vector<std::span<const std::byte>>& body, Deadline deadline,
                            const HttpLimits& limits) {
  body.clear();
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

}  // namespace disttf::net
