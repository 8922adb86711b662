// One connection for the coroutines of an event loop: accepted, or dialed (net/tcp/dial.h).
// A ByteStream, plain or TLS; a FrameReader; a queue of frames to be sent; and a MailboxEnd where
// the two ends may share memory.
//
// Everything runs on the one thread that runs the io_context; no locks. Reads are coroutines with a
// timeout. Sends never wait: what the socket does not take at once is queued and leaves in order.
// Errors: std::errc::timed_out, std::errc::operation_canceled (closed or refused by this side),
// asio::error::eof (peer closed), WireError, or a system error. After any error the connection is
// closed.
#pragma once

#include <array>
#include <asio/awaitable.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "net/memory/body_ring.h"
#include "net/memory/parameter_memory.h"
#include "net/tcp/frame_connection.h"
#include "net/tcp/frame_reader.h"
#include "net/tls/tls_stream.h"
#include "net/wire/frame.h"
#include "net/wire/handshake.h"
#include "net/wire/messages.h"

namespace disttf::net {

struct ConnectionLimits {
  // The most bytes in the queue, headers and owned bodies together; borrowed bodies are not
  // counted. A frame is always accepted when the queue is empty. A larger backlog means that the
  // peer does not read, and closes the connection.
  std::size_t max_queued_bytes = std::size_t{1} << 20U;
  // With queued frames and no byte taken by the socket for this time, the connection is closed.
  std::chrono::milliseconds write_timeout{30'000};
  // How long a refused peer has to read the sentence and hang up.
  std::chrono::milliseconds linger{1000};
};

// shared_ptr, because each of reader coroutine, writer coroutine and the owner's table may outlive
// the others.
class ServerConnection final : public FrameConnection,
                               public std::enable_shared_from_this<ServerConnection>,
                               private FrameReader::Owner {
 public:
  // `slot` is held until the connection is closed: a listener counts open descriptors with it.
  ServerConnection(asio::ip::tcp::socket socket, ConnectionLimits limits,
                   std::shared_ptr<const void> slot);
  ~ServerConnection() override = default;
  ServerConnection(const ServerConnection&) = delete;
  ServerConnection& operator=(const ServerConnection&) = delete;

  [[nodiscard]] bool is_open() const noexcept override { return state_ == State::kOpen; }
  asio::awaitable<std::error_code> read_header(FrameHeader& header,
                                               std::chrono::milliseconds timeout) override;
  asio::awaitable<std::error_code> read_body(std::span<std::byte> body,
                                             std::chrono::milliseconds timeout) override;
  asio::awaitable<std::error_code> discard_body(std::uint64_t bytes,
                                                std::chrono::milliseconds timeout) override;
  void send(FrameHeader header, std::vector<std::byte> owned = {}) override;
  bool send_borrowed(FrameHeader header, std::span<const std::byte> body,
                     std::shared_ptr<const void> owner) override;
  Delivery send_acknowledged(FrameHeader header, std::vector<std::byte> head,
                             std::span<const std::byte> rest) override;
  bool acknowledge(const Ack& ack) override;
  asio::awaitable<bool> drained(std::chrono::milliseconds timeout) override;
  void answer_offers(std::function<InPlaceTerms()> terms) override;
  [[nodiscard]] bool shares_memory() const noexcept override {
    return memory_ && memory_->has_bodies();
  }
  bool poll() override;
  void set_parked(bool parked) noexcept override;
  [[nodiscard]] std::span<std::byte> place_for(std::size_t head, std::size_t rest) override;
  [[nodiscard]] Rest take_rest(FrameHeader& header) override;
  void refuse(const Refusal& refusal, std::uint64_t request_id = 0) override;
  void finish() override;
  void close() noexcept override;

  // Offers memory to the peer. Once both have agreed, send_acknowledged() leaves bodies and headers
  // there and wakes a parked peer; acknowledgements are read from the peer's mailbox.
  void offer(std::unique_ptr<BodyRing> slots);

  // For the listener only. From begin_handshake() to set_hello() the timeout bounds all reads
  // together, however slowly the bytes arrive.
  void begin_handshake(std::chrono::milliseconds timeout);
  void set_hello(const Hello& hello);
  // As FrameReader::read_first_header().
  asio::awaitable<std::error_code> read_first_header(FrameHeader& header) {
    return reader_.read_first_header(header, tls_ != nullptr);
  }
  // Performs the TLS handshake, as acceptor or as requester; from then on all bytes go through TLS.
  // accept_tls() returns TlsError::kNotTls for a peer that speaks without TLS, and leaves the
  // connection open for a refusal. `credentials` must outlive the connection.
  asio::awaitable<std::error_code> accept_tls(Credentials& credentials);
  asio::awaitable<std::error_code> connect_tls(Credentials& credentials, const Hello& hello);
  // Why this HELLO does not match the identity that the peer has proved by TLS, as the rest of a
  // sentence about this task. nullopt: it matches, or there is no TLS.
  [[nodiscard]] std::optional<std::string> tls_misfit(const Hello& hello) const {
    return tls_ ? tls_->misfit(hello) : std::nullopt;
  }
  // Whether the peer may send requests to servers as their driver. With certificates only the
  // chief's may.
  [[nodiscard]] bool may_drive() const { return !tls_ || tls_->may_drive(); }
  // Details of a handshake error, see Proof::detail(); may be empty.
  [[nodiscard]] std::string tls_detail(std::error_code error, const std::string& self) const {
    return tls_ ? tls_->detail(error, self) : std::string();
  }
  // "10.0.0.7:51312"
  [[nodiscard]] const std::string& endpoint_text() const noexcept { return endpoint_text_; }

 private:
  enum class State : std::uint8_t { kOpen, kFinishing, kClosed };
  struct Queued {
    std::array<std::byte, kHeaderBytes> header{};
    std::vector<std::byte> owned;
    std::span<const std::byte> borrowed;  // used when owned is empty
    std::shared_ptr<const void> owner;    // of borrowed
    std::size_t sent = 0;                 // bytes of header and body together
    [[nodiscard]] std::span<const std::byte> body() const noexcept {
      return owned.empty() ? borrowed : std::span<const std::byte>(owned);
    }
    [[nodiscard]] UnsentFrame unsent() const noexcept { return {header, body(), sent}; }
    [[nodiscard]] bool complete() const noexcept { return sent == header.size() + body().size(); }
    [[nodiscard]] std::size_t cost() const noexcept { return header.size() + owned.size(); }
  };
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr TimePoint kNever = TimePoint::max();

  // For the reader.
  [[nodiscard]] std::error_code begin_wait(std::chrono::milliseconds timeout) override;
  [[nodiscard]] std::error_code end_wait(std::error_code error) noexcept override;
  [[nodiscard]] bool has_left_header() const noexcept override {
    return memory_ && memory_->has_header();
  }
  [[nodiscard]] std::weak_ptr<const void> lifetime() noexcept override { return weak_from_this(); }

  asio::awaitable<std::error_code> shake_hands(std::unique_ptr<TlsStream> tls);
  std::error_code read_failed(std::error_code error) noexcept;
  // Reads the next header; where there is a mailbox, from either it or the stream.
  asio::awaitable<std::error_code> read_next(FrameHeader& header,
                                             std::chrono::milliseconds timeout);
  asio::awaitable<std::error_code> read_either(FrameHeader& header,
                                               std::chrono::milliseconds timeout);
  // Handles a frame of the agreement.
  asio::awaitable<std::error_code> negotiate(FrameHeader header, std::chrono::milliseconds timeout);
  // Completes the read of a header; finds its body if that lies in shared memory.
  [[nodiscard]] std::error_code accept(FrameHeader& header);
  [[nodiscard]] std::error_code take_left_header(FrameHeader& header);
  // Finds the body that the header says lies in shared memory, and clears that flag. False: the
  // offset or the size is invalid.
  [[nodiscard]] bool find_body(FrameHeader& header);
  asio::awaitable<std::error_code> copy_body(std::span<std::byte> body);
  // Whether nothing is left to be sent, because the header is in the mailbox, too. Wakes a parked
  // peer.
  bool is_all_left(Left left);
  std::error_code refuse_read(const FrameHeader& header, const char* sentence);
  void enqueue(FrameHeader header, Queued frame);
  std::error_code write_now(Queued& frame);
  void start_writer();
  asio::awaitable<void> write_queue();
  asio::awaitable<void> linger();
  void watch(TimePoint deadline);
  void on_timer();
  void excuse();
  void wake_drain_waiters();

  asio::ip::tcp::socket socket_;
  const ConnectionLimits limits_;
  std::shared_ptr<const void> slot_;
  FrameReader reader_;
  const TlsStream* tls_ = nullptr;  // the reader's stream; null: no TLS
  std::string endpoint_text_;
  std::unique_ptr<InPlaceBodies> in_place_;  // null: offers are passed on as frames
  std::unique_ptr<BodyRing> slots_;          // null: none were offered
  MailboxEnd* memory_ = nullptr;             // one of these; null: there is neither
  std::optional<FrameHeader> kept_;          // read from the socket behind a header in the mailbox
  bool was_in_memory_ = false;               // the last header was in the mailbox
  bool was_nonsense_ = false;                // a header in the mailbox was invalid
  State state_ = State::kOpen;
  bool timed_out_ = false;
  bool is_excused_ = false;  // the peer's timeout was extended; until it sends something
  bool writing_ = false;
  std::deque<Queued> queue_;
  std::size_t queued_bytes_ = 0;  // headers and owned bodies in queue_
  // One timer for all deadlines of a connection. It is armed once and re-armed only when it fires,
  // so a step sets read_deadline_ without a timer operation.
  asio::steady_timer timer_;
  TimePoint timer_at_ = kNever;  // when it fires; kNever: not armed
  TimePoint read_deadline_ = kNever;
  std::chrono::milliseconds read_timeout_{0};  // what read_deadline_ was computed from
  TimePoint write_deadline_ = kNever;
  TimePoint linger_deadline_ = kNever;
  TimePoint handshake_deadline_ = kNever;  // an upper bound of read_deadline_
  std::vector<asio::steady_timer*> drain_waiters_;
};

}  // namespace disttf::net
