#include "net/tcp/channel.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <asio/error.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <cassert>
#include <cerrno>
#include <utility>
#include <vector>

#include "net/tcp/lookup.h"
#include "net/tcp/sockets.h"
#include "net/tls/byte_stream.h"
#include "net/tls/tls_stream.h"
#include "net/waiting/spin_then_park.h"

namespace disttf::net {
namespace {

using asio::ip::tcp;

class TcpChannel final : public Channel {
 public:
  explicit TcpChannel(const Interrupt& interrupt)
      : interrupt_(interrupt),
        context_(1 /* thread */),
        socket_(context_),
        stream_(std::make_unique<PlainStream>(socket_)) {}

  [[nodiscard]] std::error_code connect(const tcp::endpoint& endpoint, Deadline deadline);
  // REQUIRES: connected.
  [[nodiscard]] std::error_code secure(Credentials& credentials, const Hello& hello,
                                       Deadline deadline, std::string& detail);

  [[nodiscard]] std::error_code send(FrameHeader header, std::span<const std::byte> body,
                                     Deadline deadline) override;
  [[nodiscard]] std::error_code send_ahead(const FrameHeader& header,
                                           std::span<const std::byte> body,
                                           std::size_t ready) override;
  [[nodiscard]] std::error_code receive_header(FrameHeader& header, Deadline deadline) override;
  [[nodiscard]] std::error_code receive_body(std::span<std::byte> body, Deadline deadline) override;
  void close() noexcept override;
  [[nodiscard]] bool is_open() const noexcept override { return socket_.is_open(); }
  [[nodiscard]] int fd() noexcept override { return is_open() ? socket_.native_handle() : -1; }
  [[nodiscard]] bool has_frame() const noexcept override {
    return is_open() && stream_->has_bytes();
  }

 private:
  [[nodiscard]] std::error_code start_connect(const tcp::endpoint& endpoint) noexcept;
  [[nodiscard]] std::error_code finish_connect() noexcept;
  [[nodiscard]] std::error_code receive(std::span<std::byte> bytes, Deadline deadline);
  // Waits until the stream can go on.
  [[nodiscard]] std::error_code wait(short events, Deadline deadline) noexcept {
    return wait_for(socket_.native_handle(), stream_->waits_for(events), interrupt_, deadline);
  }
  // Waits until more bytes may be there. Within the spin budget it yields and returns at once, see
  // kFrameSpinTime.
  [[nodiscard]] std::error_code wait_for_rest(Deadline spin_until, Deadline deadline) noexcept {
    return yield_until(spin_until) ? std::error_code{} : wait(POLLIN, deadline);
  }
  std::error_code fail(std::error_code error) noexcept {
    close();
    return error;
  }

  const Interrupt& interrupt_;
  asio::io_context context_;  // never run; the socket needs one as its owner
  tcp::socket socket_;
  std::unique_ptr<ByteStream> stream_;
  std::uint64_t body_left_ = 0;  // unread bytes of the last header's body
  std::size_t ahead_ = 0;        // bytes of the next frame that have been sent already
};

// Asio's synchronous connect would wait without a deadline, even on a non-blocking socket.
std::error_code TcpChannel::start_connect(const tcp::endpoint& endpoint) noexcept {
  if (::connect(socket_.native_handle(), endpoint.data(),
                static_cast<socklen_t>(endpoint.size())) == 0) {
    return {};
  }
  const std::error_code error(errno, std::system_category());
  // A connect() that a signal interrupts continues in the background.
  if (error == std::errc::interrupted) return asio::error::in_progress;
  return error;
}

std::error_code TcpChannel::finish_connect() noexcept {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(socket_.native_handle(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
    error = errno;
  }
  return {error, std::system_category()};
}

std::error_code TcpChannel::connect(const tcp::endpoint& endpoint, Deadline deadline) {
  std::error_code error;
  socket_.open(endpoint.protocol(), error);
  if (!error) socket_.non_blocking(true, error);
  // A frame is written in one piece, so waiting to fill a segment would only add delay.
  if (!error) socket_.set_option(tcp::no_delay(true), error);
  if (!error) socket_.set_option(asio::socket_base::keep_alive(true), error);
  if (error) return fail(error);
  if (is_loopback(endpoint.address())) send_unpaced(socket_.native_handle());

  error = start_connect(endpoint);
  if (error == std::errc::operation_in_progress) {
    // Writable means that the connect is finished; SO_ERROR then has its result.
    error = wait(POLLOUT, deadline);
    if (!error) error = finish_connect();
  }
  if (error) return fail(error);
  // A socket that gets the ephemeral port it connects to, while no process listens there, connects
  // to itself (simultaneous open). It would then keep the listener from ever starting.
  if (socket_.local_endpoint(error) == socket_.remote_endpoint(error)) {
    return fail(error ? error : std::make_error_code(std::errc::connection_refused));
  }
  return {};
}

std::error_code TcpChannel::secure(Credentials& credentials, const Hello& hello, Deadline deadline,
                                   std::string& detail) {
  auto made = TlsStream::connect(socket_, credentials, hello);
  if (!made) return fail(std::make_error_code(std::errc::not_enough_memory));
  TlsStream& tls = *made;
  stream_ = std::move(made);
  std::error_code error = tls.shake_hands();
  while (error == asio::error::would_block) {
    error = wait(POLLIN, deadline);
    if (!error) error = tls.shake_hands();
  }
  // The detail names the peer's certificate, which the error code cannot.
  if (error) detail = tls.detail(error, "this task");
  return error ? fail(error) : error;
}

std::error_code TcpChannel::send(FrameHeader header, std::span<const std::byte> body,
                                 Deadline deadline) {
  if (!is_open()) return asio::error::not_connected;
  // For a body in shared memory the caller has set the size, and no bytes follow the header.
  if ((header.flags & kFlagInPlace) == 0) header.body_size = body.size();
  std::array<std::byte, kHeaderBytes> head{};
  encode_header(header, head);
  std::size_t sent = std::exchange(ahead_, 0);
  // Bytes that send_ahead() has sent already are skipped.
  while (sent < head.size() + body.size()) {
    std::error_code error;
    sent += stream_->write_now({head, body, sent}, error);
    if (error == asio::error::would_block) error = wait(POLLOUT, deadline);
    if (error) return fail(error);
  }
  return {};
}

std::error_code TcpChannel::send_ahead(const FrameHeader& header, std::span<const std::byte> body,
                                       std::size_t ready) {
  if (!is_open()) return asio::error::not_connected;
  FrameHeader whole = header;
  // The header announces the whole body although only a part of it is ready: the receiver starts to
  // read while the rest is computed.
  whole.body_size = body.size();
  std::array<std::byte, kHeaderBytes> head{};
  encode_header(whole, head);
  while (ahead_ < head.size() + ready) {
    std::error_code error;
    ahead_ += stream_->write_now({head, body.first(ready), ahead_}, error);
    // send() sends the rest later.
    if (error == asio::error::would_block) return {};
    if (error) return fail(error);
  }
  return {};
}

std::error_code TcpChannel::receive(std::span<std::byte> bytes, Deadline deadline) {
  if (!is_open()) return asio::error::not_connected;
  // The rest of a frame mostly arrives soon after its beginning, so each call has a spin budget.
  const Deadline spin_until = std::min(deadline, Clock::now() + kFrameSpinTime);
  while (!bytes.empty()) {
    std::error_code error;
    const std::size_t received = stream_->read_now(bytes, error);
    if (error == asio::error::would_block) error = wait_for_rest(spin_until, deadline);
    if (error) return fail(error);
    bytes = bytes.subspan(received);
  }
  return {};
}

std::error_code TcpChannel::receive_header(FrameHeader& header, Deadline deadline) {
  assert(body_left_ == 0 && "the last frame's body was not received");
  std::array<std::byte, kHeaderBytes> bytes{};
  if (const std::error_code error = receive(bytes, deadline)) return error;
  if (const std::error_code error = decode_header(bytes, header)) return fail(error);
  body_left_ = header.bytes_behind();
  return {};
}

std::error_code TcpChannel::receive_body(std::span<std::byte> body, Deadline deadline) {
  // More than was announced would be read from the next frame. (Less is announced where the body
  // lies elsewhere.)
  if (body.size() > body_left_) return fail(WireError::kBadBody);
  body_left_ -= body.size();
  return receive(body, deadline);
}

void TcpChannel::close() noexcept {
  // Sends close_notify before the descriptor is gone.
  if (is_open()) stream_->finish();
  stream_.reset();
  std::error_code ignored;  // the descriptor is closed either way
  socket_.close(ignored);
  body_left_ = 0;
  ahead_ = 0;
}

// `credentials`, `hello` and `detail`: all are set, or none.
std::unique_ptr<Channel> connect(const Address& address, Credentials* credentials,
                                 const Hello* hello, const Interrupt& interrupt, Deadline deadline,
                                 std::error_code& error, std::string* detail) {
  const std::vector<tcp::endpoint> endpoints = resolve(address, interrupt, deadline, error);
  std::unique_ptr<TcpChannel> channel;
  try {
    channel = std::make_unique<TcpChannel>(interrupt);
  } catch (const std::system_error& failure) {  // no descriptors for the socket's context
    error = failure.code();
    return nullptr;
  }
  for (std::size_t i = 0; i < endpoints.size(); ++i) {
    // An address that drops packets must not use up the time of those after it.
    const Deadline now = Clock::now();
    const auto share = (deadline - now) / static_cast<Clock::rep>(endpoints.size() - i);
    error = channel->connect(endpoints[i], now + share);
    if (!error && credentials != nullptr) {
      error = channel->secure(*credentials, *hello, now + share, *detail);
    }
    if (!error) return channel;
    // An interrupt ends the whole attempt; any other error may concern only this address.
    if (error == std::errc::operation_canceled) break;
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<Channel> connect_tcp(const Address& address, const Interrupt& interrupt,
                                     Deadline deadline, std::error_code& error) {
  return connect(address, nullptr, nullptr, interrupt, deadline, error, nullptr);
}

std::unique_ptr<Channel> connect_tls(const Address& address, Credentials& credentials,
                                     const Hello& hello, const Interrupt& interrupt,
                                     Deadline deadline, std::error_code& error,
                                     std::string& detail) {
  return connect(address, &credentials, &hello, interrupt, deadline, error, &detail);
}

}  // namespace disttf::net
