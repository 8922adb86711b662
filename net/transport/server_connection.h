// One connection as coroutines of an event loop see it: accepted, or dialed (net/transport/dial.h).
//
// Everything runs on the one thread that runs the io_context; no locks. Reads are coroutines with
// a limit on silence; sends never wait: what the socket does not take at once is queued and leaves
// in order. Errors: std::errc::timed_out (silence), std::errc::operation_canceled (closed or
// refused by this side), asio::error::eof (peer closed), WireError, or what the system said. After
// any error the connection is closed.
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

#include "net/transport/body_slots.h"
#include "net/transport/parameter_memory.h"
#include "net/transport/tls_stream.h"
#include "net/wire/frame.h"
#include "net/wire/handshake.h"
#include "net/wire/messages.h"

namespace disttf::net {

struct ConnectionLimits {
  // Bytes that may wait in the queue, headers and owned bodies together; borrowed bodies cost
  // nothing. A frame that finds the queue empty is always taken. Beyond it the peer does not
  // read: the connection is closed.
  std::size_t max_queued_bytes = std::size_t{1} << 20U;
  // Queued frames while the socket takes not a byte: after this the connection is closed.
  std::chrono::milliseconds write_timeout{30'000};
  // A refused peer gets this long to take the sentence and hang up.
  std::chrono::milliseconds linger{1000};
};

// shared_ptr because the reader coroutine, the writer coroutine and the owner's table each
// outlive the others now and then.
class ServerConnection : public std::enable_shared_from_this<ServerConnection> {
 public:
  // `slot` is held until the connection is closed: how a listener counts descriptors in use.
  ServerConnection(asio::ip::tcp::socket socket, ConnectionLimits limits,
                   std::shared_ptr<const void> slot);
  ~ServerConnection();
  ServerConnection(const ServerConnection&) = delete;
  ServerConnection& operator=(const ServerConnection&) = delete;

  [[nodiscard]] const Hello& hello() const noexcept { return hello_; }
  [[nodiscard]] const std::string& peer_text() const noexcept { return peer_text_; }
  // False once closed, or refused and about to be.
  [[nodiscard]] bool is_open() const noexcept { return state_ == State::kOpen; }

  // The next header. `timeout`: silence allowed, counted from the call and again from each byte;
  // zero waits for ever. One read at a time.
  asio::awaitable<std::error_code> read_header(FrameHeader& header,
                                               std::chrono::milliseconds timeout);
  // Exactly body.size() bytes into place. Whoever sizes `body` by a header must have checked
  // body_size against its own limit first.
  asio::awaitable<std::error_code> read_body(std::span<std::byte> body,
                                             std::chrono::milliseconds timeout);
  // Reads and throws away `bytes` bytes.
  asio::awaitable<std::error_code> discard_body(std::uint64_t bytes,
                                                std::chrono::milliseconds timeout);

  // From now on the peer, a trainer, a primary or a chief, may offer memory in which it has its
  // gradients or updates, or nothing: it is answered by what `terms` says then, which is asked only
  // of a peer on this machine, and bodies may be read where they lie from then on, by both sides.
  void answer_offers(std::function<InPlaceTerms()> terms) { terms_ = std::move(terms); }
  // The two have agreed on such memory.
  [[nodiscard]] bool shares_memory() const noexcept { return in_place_ != nullptr; }
  // The last header's body, if it need not be read: read_body() and discard_body() take it from
  // there, too.
  [[nodiscard]] const BodyInPlace& body_in_place() const noexcept { return body_in_place_; }
  // The sentence with which a read has refused the peer, for the log; empty: none has.
  [[nodiscard]] const std::string& refused_with() const noexcept { return refused_with_; }

  // Queues a frame; header.body_size is set from the body. Frames leave in order. On a closed
  // connection it does nothing: the reader is told.
  void send(FrameHeader header, std::vector<std::byte> owned = {});
  // As send, the body borrowed: `body` must stay unchanged until the frame has left or the
  // connection is closed (a ps's parameters between two steps). After close() nothing reads it.
  // `owner` is kept until then: a refused connection, say, goes on to send what is queued, and its
  // owner may be done with it. A body that the peer may read in place is not sent at all: it must
  // stay unchanged until the peer's next gradient, or request of another kind. Returns whether it
  // is sent.
  bool send_borrowed(FrameHeader header, std::span<const std::byte> body,
                     std::shared_ptr<const void> owner);
  // Offers the peer memory. Once they have agreed, send_acknowledged() leaves bodies there, and
  // frames' headers, and rings a peer that sleeps; and finds acknowledgements in the peer's.
  void offer(std::unique_ptr<BodySlots> slots);
  // Wakes the read that waits for a frame, if the peer has left an acknowledgement. Returns whether
  // there is one, which will be read when the event loop goes on. While this end is awake it is to
  // look; and once more between set_asleep(true) and its sleep.
  bool look();
  void set_asleep(bool asleep) noexcept;
  // Where the rest of a body, behind a head of so many bytes, may be written for the next
  // send_acknowledged(). Nothing: in memory of one's own.
  [[nodiscard]] std::span<std::byte> place_for(std::size_t head, std::size_t rest);
  // As send(), of a frame that the peer acknowledges: by an ACK of this request_id, or of a higher
  // one, when it is done with the body, which is `head` and then `rest`: a copy of it, or what has
  // been written where place_for() said.
  enum class Told : std::uint8_t {
    kSent,
    kLeft,   // it is left in memory
    kGiven,  // the same, and the peer has it: it takes that also if this process ends, as
             // take_rest() does. The ACK, which comes as ever, says when it is done with the body.
  };
  Told send_acknowledged(FrameHeader header, std::vector<std::byte> head,
                         std::span<const std::byte> rest);
  // Of a connection that is closed, or will be: the next header that the peer has left in memory,
  // as read_header() gives it, body_in_place() too. From the first call on the peer gives nothing
  // any more.
  enum class Rest : std::uint8_t {
    kNone,
    kHeader,
    kNonsense,  // what lies there, or has been read from there before, is none
  };
  [[nodiscard]] Rest take_rest(FrameHeader& header);
  // As send(). One that answers the header that was read last may be left in memory, if that was.
  // Returns whether it is sent.
  bool acknowledge(const Ack& ack);
  // True once every queued frame was handed to the kernel; false when `timeout` passed or the
  // connection closed first.
  asio::awaitable<bool> drained(std::chrono::milliseconds timeout);

  // Queues REFUSED and closes once the peer has it (bounded by ConnectionLimits::linger); reads
  // end with operation_canceled.
  void refuse(const Refusal& refusal, std::uint64_t request_id = 0);
  // Sends what is queued, then closes as refuse() does.
  void finish();
  // At once; queued frames are dropped.
  void close() noexcept;

  // For the listener only. From begin_handshake() to set_hello() all reads together end at the
  // timeout, however slowly the bytes drip.
  void begin_handshake(std::chrono::milliseconds timeout);
  void set_hello(const Hello& hello);
  // The first frame's header, but returns kBadMagic as soon as a byte shows that no frame comes.
  // On kBadVersion, and on TlsError::kNotSpoken where TLS comes and none is spoken, the connection
  // stays open for a refusal.
  asio::awaitable<std::error_code> read_first_header(FrameHeader& header);
  // From here on all bytes go through TLS; of the one who accepts, and of the one who connects. On
  // TlsError::kNotTls, which the first gets where a peer speaks without, the connection stays open
  // as it is for a refusal. `credentials` must outlive the connection.
  asio::awaitable<std::error_code> accept_tls(Credentials& credentials);
  asio::awaitable<std::error_code> connect_tls(Credentials& credentials, const Hello& hello);
  // What is wrong with this HELLO from one who has shown who it is by TLS, as the rest of a
  // sentence about this task; nullopt: nothing, or it is not by TLS.
  [[nodiscard]] std::optional<std::string> tls_misfit(const Hello& hello) const {
    return tls_ ? tls_->misfit(hello) : std::nullopt;
  }
  // Whether the peer may order servers about as their driver: who has a certificate only where it
  // is the chief's.
  [[nodiscard]] bool may_drive() const { return !tls_ || tls_->may_drive(); }
  // More about an error of the handshake than its code says, see Proof::detail(); may be empty.
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
    [[nodiscard]] bool complete() const noexcept { return sent == header.size() + body().size(); }
    [[nodiscard]] std::size_t cost() const noexcept { return header.size() + owned.size(); }
  };
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr TimePoint kNever = TimePoint::max();

  asio::awaitable<std::error_code> read_some(std::span<std::byte> buffer, std::size_t& received,
                                             std::chrono::milliseconds timeout);
  // The time that the peer has for what is read begins.
  void begin_read(std::chrono::milliseconds timeout);
  // Like read_some(); asio::error::interrupted: nothing has come, and a header lies in memory.
  asio::awaitable<std::error_code> read_unless_left(std::span<std::byte> buffer,
                                                    std::size_t& received,
                                                    std::chrono::milliseconds timeout);
  // Until something comes over the socket, or a header lies in memory.
  asio::awaitable<void> await_either();
  // A header that comes over the socket; asio::error::interrupted as above.
  asio::awaitable<std::error_code> read_frame_header(FrameHeader& header,
                                                     std::chrono::milliseconds timeout);
  // Whether the frame is the transport's own, and not for whoever reads frames: then it is dealt
  // with, or `error` set.
  asio::awaitable<bool> take_own(const FrameHeader& header, std::chrono::milliseconds timeout,
                                 std::error_code& error);
  // A header lies in memory. Returns whether it will be read now.
  bool wake_reader();
  // Whether one does; and takes it, which REQUIRES that.
  [[nodiscard]] bool has_left_header() const noexcept;
  [[nodiscard]] std::error_code take_left_header(FrameHeader& header);
  // Where the body lies that the header says is left, without saying so any more; false: nowhere.
  [[nodiscard]] bool find_body(FrameHeader& header);
  // Whether the header was left, too, so that nothing is to be sent; a peer that sleeps is rung.
  bool is_all_left(Left left);
  asio::awaitable<std::error_code> shake_hands();
  // Until TLS may go on; what it waits for to be read is in its hands then.
  asio::awaitable<std::error_code> await_tls();
  // What has arrived already.
  std::size_t read_now(std::span<std::byte> body, std::error_code& error);
  std::error_code read_failed(std::error_code error) noexcept;
  asio::awaitable<std::error_code> take_offer(FrameHeader header,
                                              std::chrono::milliseconds timeout);
  asio::awaitable<std::error_code> take_answer(FrameHeader header,
                                               std::chrono::milliseconds timeout);
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
  std::unique_ptr<TlsStream> tls_;  // null: bytes go as they are. Not used once closed.
  std::string endpoint_text_;
  std::string peer_text_;  // "worker 1 (10.0.0.7:51312)"; before HELLO the endpoint alone
  Hello hello_;
  std::function<InPlaceTerms()> terms_;        // empty: offers are none of its frames
  std::unique_ptr<PendingHandover> handover_;  // until the trainer says that it has been taken
  std::unique_ptr<InPlaceBodies> in_place_;    // once they have agreed
  std::unique_ptr<BodySlots> slots_;           // null: none were offered
  BodyInPlace body_in_place_;                  // of the last header
  std::optional<FrameHeader> kept_;            // came over the socket behind a header in memory
  bool is_interruptible_ = false;              // the reader waits for either, and for no header yet
  bool awaits_socket_ = false;                 // a wait for its bytes is under way
  bool may_have_bytes_ = false;                // TLS: that have come with the last ones
  bool was_in_memory_ = false;                 // the last header
  bool was_nonsense_ = false;                  // one that lay there
  asio::steady_timer either_;                  // never due: cancelled when there is one
  std::string refused_with_;
  State state_ = State::kOpen;
  bool timed_out_ = false;
  bool is_excused_ = false;  // the peer's silence; until it says something
  bool writing_ = false;
  std::deque<Queued> queue_;
  std::size_t queued_bytes_ = 0;  // headers and owned bodies in queue_
  // One timer for all of a connection's deadlines, armed once and re-armed only when it fires: a
  // step sets read_deadline_ and touches no timer.
  asio::steady_timer timer_;
  TimePoint timer_at_ = kNever;  // when it fires; kNever: not armed
  TimePoint read_deadline_ = kNever;
  std::chrono::milliseconds read_timeout_{0};  // what it was made of
  TimePoint write_deadline_ = kNever;
  TimePoint linger_deadline_ = kNever;
  TimePoint handshake_deadline_ = kNever;  // an upper bound of read_deadline_
  std::vector<asio::steady_timer*> drain_waiters_;
};

}  // namespace disttf::net
