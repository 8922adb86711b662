// A connection over which a ps exchanges frames with a peer, as its shell uses it: what
// ServerConnection does over a socket and shared memory, and a simulated connection without either.
//
// Reads are coroutines with a timeout; sends never wait. For errors see
// net/tcp/server_connection.h. After any error the connection is closed.
#pragma once

#include <asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "net/memory/parameter_memory.h"
#include "net/wire/frame.h"
#include "net/wire/handshake.h"
#include "net/wire/messages.h"

namespace disttf::net {

class FrameConnection {
 public:
  FrameConnection() = default;
  FrameConnection(const FrameConnection&) = delete;
  FrameConnection& operator=(const FrameConnection&) = delete;
  virtual ~FrameConnection() = default;

  [[nodiscard]] const Hello& hello() const noexcept { return hello_; }
  // "worker 1 (10.0.0.7:51312)"; before HELLO: the endpoint.
  [[nodiscard]] const std::string& peer_text() const noexcept { return peer_text_; }
  // False once closed, or refused and about to be closed.
  [[nodiscard]] virtual bool is_open() const noexcept = 0;

  // --- reads

  // Reads the next header, as FrameReader does; it may come through a mailbox.
  virtual asio::awaitable<std::error_code> read_header(FrameHeader& header,
                                                       std::chrono::milliseconds timeout) = 0;
  // Reads exactly body.size() bytes into `body`. A caller that sizes `body` by a header must have
  // checked body_size against its own limit first.
  virtual asio::awaitable<std::error_code> read_body(std::span<std::byte> body,
                                                     std::chrono::milliseconds timeout) = 0;
  // Reads and discards `bytes` bytes.
  virtual asio::awaitable<std::error_code> discard_body(std::uint64_t bytes,
                                                        std::chrono::milliseconds timeout) = 0;
  // The last header's body if it need not be read. read_body() and discard_body() take it from
  // there, too.
  [[nodiscard]] const BodyInPlace& body_in_place() const noexcept { return body_in_place_; }
  // For the log: the sentence with which a read has refused the peer; empty: none has.
  [[nodiscard]] const std::string& refused_with() const noexcept { return refused_with_; }

  // --- sends

  // Queues a frame; header.body_size is set from the body. Frames leave in order. Does nothing on a
  // closed connection; the reader gets the error.
  virtual void send(FrameHeader header, std::vector<std::byte> owned = {}) = 0;
  // As send(), with a borrowed body: `body` must stay unchanged until the frame has left or the
  // connection is closed (for example a ps's parameters between two steps). After close() it is not
  // read any more. `owner` is kept until then, because a refused connection still sends what is
  // queued after its owner may have finished. A body that the peer may read in place is not sent at
  // all; it must stay unchanged until the peer's next gradient, or request of another kind. Returns
  // whether the body is sent.
  virtual bool send_borrowed(FrameHeader header, std::span<const std::byte> body,
                             std::shared_ptr<const void> owner) = 0;
  // As send(), for a frame that the peer acknowledges when it is done with the body: by an ACK of
  // this request_id or a higher one. The body is `head` followed by `rest`, which is copied, or has
  // been written where place_for() returned.
  enum class Delivery : std::uint8_t {
    kSent,
    kLeft,       // in shared memory
    kHandedOff,  // the same, and handed off: the peer takes it even if this process ends
  };
  virtual Delivery send_acknowledged(FrameHeader header, std::vector<std::byte> head,
                                     std::span<const std::byte> rest) = 0;
  // As send(). An answer to the header that was read last may go through the mailbox, if that
  // header did. Returns whether it is sent.
  virtual bool acknowledge(const Ack& ack) = 0;
  // Waits until the kernel has all queued frames. False when `timeout` has passed or the connection
  // closed first.
  virtual asio::awaitable<bool> drained(std::chrono::milliseconds timeout) = 0;

  // --- shared memory

  // From now on the peer, a trainer, a primary or a chief, may offer shared memory. `terms` is
  // called only for a peer on this machine and returns what this end agrees to. After an agreement
  // both sides may read bodies in place.
  virtual void answer_offers(std::function<InPlaceTerms()> terms) = 0;
  // Whether this end reads bodies in the peer's memory, as the two have agreed.
  [[nodiscard]] virtual bool shares_memory() const noexcept = 0;
  // Wakes the read that waits for a frame if the peer has left an acknowledgement. Returns whether
  // there is one, which is read when the event loop continues. An awake end has to call poll(), and
  // once more between set_parked(true) and its sleep.
  virtual bool poll() = 0;
  virtual void set_parked(bool parked) noexcept = 0;
  // Returns where the rest of a body, behind a head of `head` bytes, may be written for the next
  // send_acknowledged(). Empty: the caller uses memory of its own.
  [[nodiscard]] virtual std::span<std::byte> place_for(std::size_t head, std::size_t rest) = 0;
  // For a connection that is closed, or about to be: reads the next header that the peer has left
  // in its mailbox, as read_header() does, including body_in_place(). The first call ends the
  // handing off by clearing the owner token.
  enum class Rest : std::uint8_t {
    kNone,
    kHeader,
    kNonsense,  // invalid data is there now, or was read before
  };
  [[nodiscard]] virtual Rest take_rest(FrameHeader& header) = 0;

  // --- the end

  // Queues REFUSED and closes when the peer has received it (bounded by ConnectionLimits::linger).
  // Reads end with operation_canceled.
  virtual void refuse(const Refusal& refusal, std::uint64_t request_id = 0) = 0;
  // Sends what is queued, then closes as refuse() does.
  virtual void finish() = 0;
  // Closes at once; queued frames are dropped.
  virtual void close() noexcept = 0;

 protected:
  Hello hello_;
  std::string peer_text_;
  BodyInPlace body_in_place_;  // of the last header
  std::string refused_with_;
};

}  // namespace disttf::net
