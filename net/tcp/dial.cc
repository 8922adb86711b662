#include "net/tcp/dial.h"

#include <asio/error.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "net/tcp/sockets.h"
#include "net/tls/credentials.h"
#include "net/waiting/as_tuple.h"
#include "net/wire/bare_message.h"

namespace disttf::net {
namespace {

using asio::ip::tcp;
using std::chrono::milliseconds;

// Connects to one endpoint; a timer limits the attempt. The socket is shared with the timer's
// handler, which may be queued already when the attempt ends.
asio::awaitable<std::error_code> connect(std::shared_ptr<tcp::socket> socket,
                                         tcp::endpoint endpoint, milliseconds timeout) {
  asio::steady_timer timer(socket->get_executor(), timeout);
  const auto late = std::make_shared<bool>(false);
  timer.async_wait([socket, late](std::error_code stopped) {
    if (!stopped) {
      *late = true;
      std::error_code ignored;
      socket->close(ignored);
    }
  });
  // Opened here and not by async_connect, because the congestion control is selected before that.
  std::error_code not_open;  // async_connect reports the error, too
  socket->open(endpoint.protocol(), not_open);
  if (!not_open && is_loopback(endpoint.address())) send_unpaced(socket->native_handle());
  auto [error] = co_await socket->async_connect(endpoint, kAsTuple);
  timer.cancel();
  // The timer may have closed the socket although the connect had succeeded, so `late` decides.
  if (*late) co_return std::make_error_code(std::errc::timed_out);
  std::error_code gone;
  // See channel.cc: a socket can connect to itself.
  if (!error && socket->local_endpoint(gone) == socket->remote_endpoint(gone)) {
    error = gone ? gone : std::make_error_code(std::errc::connection_refused);
  }
  co_return error;
}

// Sends HELLO and reads its answer.
asio::awaitable<void> exchange_hello(Dialed& dialed, const Hello& hello, milliseconds timeout,
                                     Credentials* credentials) {
  ServerConnection& connection = *dialed.connection;
  connection.begin_handshake(timeout);
  if (credentials != nullptr) {
    dialed.error = co_await connection.connect_tls(*credentials, hello);
    if (dialed.error) co_return;
  }
  connection.send(HelloFrame{}.to_header(), encode(hello));
  FrameHeader header;
  dialed.error = co_await connection.read_header(header, timeout);
  if (dialed.error) co_return;
  const bool is_welcome = !WelcomeFrame{}.from_header(header);
  if ((!is_welcome && RefusedFrame{}.from_header(header)) ||
      header.body_size > kMaxControlBodyBytes) {
    dialed.error = WireError::kUnexpected;
    co_return;
  }
  // The size was bounded above, before this allocation.
  std::vector<std::byte> body(header.body_size);
  dialed.error = co_await connection.read_body(body, timeout);
  if (dialed.error) co_return;
  if (is_welcome) {
    dialed.error = decode(body, dialed.welcome);
    co_return;
  }
  dialed.error = decode(body, dialed.refusal);
  if (!dialed.error) dialed.error = WireError::kRefused;
}

// Turns an error into a refusal where no later attempt can succeed.
void refuse_for(Credentials& credentials, Dialed& dialed) {
  const ServerConnection& connection = *dialed.connection;
  auto refusal = credentials.refusal(dialed.error, connection.endpoint_text(),
                                     connection.tls_detail(dialed.error, "this task"));
  if (!refusal) return;
  dialed.error = WireError::kRefused;
  dialed.refusal = std::move(*refusal);
}

}  // namespace

asio::awaitable<Dialed> dial(asio::io_context& context, Address address, Hello hello,
                             ConnectionLimits limits, milliseconds timeout, NameLookup& lookup,
                             Credentials* credentials) {
  Dialed dialed;
  const std::vector<tcp::endpoint> endpoints = co_await lookup.resolve(
      context.get_executor(), address, Clock::now() + timeout, dialed.error);
  for (const tcp::endpoint& endpoint : endpoints) {
    const auto socket = std::make_shared<tcp::socket>(context);
    dialed.error = co_await connect(socket, endpoint,
                                    timeout / static_cast<milliseconds::rep>(endpoints.size()));
    if (dialed.error) continue;
    dialed.connection = std::make_shared<ServerConnection>(std::move(*socket), limits,
                                                           std::shared_ptr<const void>());
    // Whatever the handshake results in, no further address is tried: a refusal by this peer must
    // not be hidden by another address's error.
    co_await exchange_hello(dialed, hello, timeout, credentials);
    break;
  }
  if (dialed.error && dialed.connection) {
    if (credentials != nullptr) refuse_for(*credentials, dialed);
    dialed.connection->close();
    dialed.connection.reset();
  }
  // From here on the peer is the sender, as in accepted connections.
  if (dialed.connection) {
    std::swap(hello.from, hello.to);
    dialed.connection->set_hello(hello);
  }
  co_return dialed;
}

namespace {

[[nodiscard]] std::error_code receive_welcome(Channel& channel, const FrameHeader& header,
                                              Welcome& welcome, Deadline deadline) {
  if (header.body_size != kBodyBytes<Welcome>) return WireError::kBadBody;
  std::vector<std::byte> body(kBodyBytes<Welcome>);
  if (const std::error_code error = channel.receive_body(body, deadline)) return error;
  return decode(body, welcome);
}

// Sends HELLO and reads its answer, on a channel that was just connected.
void exchange_hello(OpenedChannel& opened, const Hello& hello, Deadline deadline) {
  FrameHeader header = HelloFrame{}.to_header();
  opened.error = opened.channel->send(header, encode(hello), deadline);
  if (!opened.error) opened.error = opened.channel->receive_header(header, deadline);
  if (opened.error) return;
  if (!WelcomeFrame{}.from_header(header)) {
    opened.error = receive_welcome(*opened.channel, header, opened.welcome, deadline);
  } else if (!RefusedFrame{}.from_header(header)) {
    opened.refusal = receive_refusal(*opened.channel, header, deadline);
    opened.error = WireError::kRefused;
  } else {
    opened.error = WireError::kUnexpected;
  }
}

}  // namespace

OpenedChannel open_channel(const Address& address, const Hello& hello, const Interrupt& interrupt,
                           Deadline deadline, Credentials* credentials) {
  OpenedChannel opened;
  std::string detail;
  opened.channel = credentials != nullptr ? connect_tls(address, *credentials, hello, interrupt,
                                                        deadline, opened.error, detail)
                                          : connect_tcp(address, interrupt, deadline, opened.error);
  if (opened.channel) exchange_hello(opened, hello, deadline);
  if (credentials != nullptr && opened.error) {
    if (auto refusal = credentials->refusal(opened.error, to_string(address), detail)) {
      opened.error = WireError::kRefused;
      opened.refusal = std::move(*refusal);
    }
  }
  if (opened.error == WireError::kBadVersion) {
    // Whatever it has answered, it will not be understood later either.
    opened.error = WireError::kRefused;
    opened.refusal = {.exit_code = kExitMisconfigured,
                      .sentence = to_string(address) + " speaks another wire version than " +
                                  std::to_string(kWireVersion) +
                                  ": run the same release of disttf everywhere"};
  }
  // After a failed handshake the position in the stream is unknown, so the channel is unusable.
  if (opened.error) opened.channel.reset();
  return opened;
}

Refusal receive_refusal(Channel& channel, const FrameHeader& header, Deadline deadline) {
  Refusal refusal{.exit_code = kExitRestartMe,
                  // Retrying cannot help, so this counts as a refusal.
                  .sentence = "the peer refused, but its reason did not arrive"};
  // The bound is checked before the allocation, because the size comes from the peer.
  if (header.body_size <= kMaxControlBodyBytes) {
    std::vector<std::byte> body(header.body_size);
    // On an error the stock sentence stays.
    if (!channel.receive_body(body, deadline)) static_cast<void>(decode(body, refusal));
  }
  channel.close();
  return refusal;
}

std::error_code receive_text(Channel& channel, std::uint64_t size, Deadline deadline,
                             std::string& text) {
  text.clear();
  while (text.size() < size) {
    const std::size_t have = text.size();
    text.resize(have + next_piece(have, size));
    const auto rest = std::as_writable_bytes(std::span(text)).subspan(have);
    if (const std::error_code error = channel.receive_body(rest, deadline)) return error;
  }
  return {};
}

}  // namespace disttf::net
