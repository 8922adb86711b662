#include "net/http/http_service_connection.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <asio/error.hpp>
#include <cerrno>

#include "net/http/browser_guard.h"
#include "net/tcp/lookup.h"

namespace disttf::net {
namespace {

constexpr std::string_view kEndOfChunks = "0\r\n\r\n";

std::string chunk(std::string_view text) {
  if (text.empty()) return {};  // an empty chunk would be the end
  return fmt::format("{:x}\r\n{}\r\n", text.size(), text);
}

// A reply as bytes, without its lines.
std::string text_of(const HttpReply& reply, const HttpServerRequest& request, bool stays_open) {
  std::string text = head_text(reply, stays_open, !request.is_http10);
  // The head keeps the body's length for HEAD, as RFC 9110 (9.3.2) asks.
  if (request.method == "HEAD") return text;
  return text += reply.lines && !request.is_http10 ? chunk(reply.body) : reply.body;
}

}  // namespace

// While the peer still exists: after it has gone, the kernel does not report who it was.
void HttpService::Connection::identify() {
  ucred who{};
  socklen_t size = sizeof(who);
  if (::getsockopt(socket(), SOL_SOCKET, SO_PEERCRED, &who, &size) == 0) {
    local_ = LocalPeer{.uid = who.uid, .pid = who.pid};
  }
  if (!listener.options.refuses_peer) return;
  refusal = local_
                ? listener.options.refuses_peer(*local_)
                : std::optional<std::string>("the kernel does not identify the requesting process");
}

std::string HttpService::Connection::peer() const {
  asio::ip::address host = peer_.address();
  if (host.is_v6()) {
    asio::ip::address_v6 v6 = host.to_v6();
    v6.scope_id(0);
    // A socket for both versions reports an IPv4 client as ::ffff:a.b.c.d.
    host = v6.is_v4_mapped() ? asio::ip::address(asio::ip::make_address_v4(asio::ip::v4_mapped, v6))
                             : asio::ip::address(v6);
  }
  return host.to_string();
}

std::string HttpService::Connection::client() const {
  if (peer_.data()->sa_family != AF_UNIX) return endpoint_text(peer_);
  return local_ ? fmt::format("uid {}, pid {}", local_->uid, local_->pid) : "a peer that has gone";
}

std::size_t HttpService::Connection::send_some(std::string_view bytes, std::error_code& error) {
  if (tls) return tls->write_some(bytes, error);
  const ssize_t size = ::send(socket(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (size >= 0) return static_cast<std::size_t>(size);
  if (errno == EAGAIN) {
    error = asio::error::would_block;
  } else if (errno != EINTR) {
    error = {errno, std::system_category()};
  }
  return 0;
}

void HttpService::Connection::put(const HttpReply& reply, bool stays_open) {
  if (use() == HttpUse::kBrowser) {
    HttpReply sealed = reply;
    BrowserGuard::seal(sealed);
    out = text_of(sealed, request(), stays_open);
  } else {
    out = text_of(reply, request(), stays_open);
  }
  is_last = !stays_open;
}

void HttpService::Connection::follow(std::shared_ptr<HttpLineStream> stream,
                                     std::function<void()> changed) {
  is_stream = true;
  takes_chunks = !request().is_http10;
  rest.clear();
  lines = std::move(stream);
  lines->notify(std::move(changed));
}

void HttpService::Connection::drop_lines() {
  if (lines) lines->notify({});
  lines.reset();
}

bool HttpService::Connection::next_lines() {
  if (!lines) return false;
  std::string text = lines->take();
  if (text.empty() && !lines->has_ended()) return false;
  if (text.empty()) {
    drop_lines();
    out = takes_chunks ? kEndOfChunks : "";
  } else {
    out = takes_chunks ? chunk(text) : std::move(text);
  }
  out_sent = 0;
  return true;
}

}  // namespace disttf::net
