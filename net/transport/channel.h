// A channel: framed messages to one peer, used by one thread that computes, sends, waits, computes.
//
// Synchronous on purpose: the step's thread talks to the ps itself, there is no hand-off to
// another thread on that way. Every wait has a deadline and can be interrupted.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <system_error>

#include "net/transport/body_place.h"
#include "net/transport/interrupt.h"
#include "net/wire/address.h"
#include "net/wire/frame.h"

namespace disttf::net {

class Credentials;  // net/transport/credentials.h
struct Hello;       // net/wire/handshake.h

// Not thread-safe. After any error the channel is closed: part of a frame may be gone.
// Errors: std::errc::timed_out (deadline), std::errc::operation_canceled (interrupt), WireError,
// asio::error::eof (peer closed), or what the system said. A deadline bounds the whole call.
// A call that need not wait succeeds even when the deadline has passed or the interrupt is set.
class Channel {
 public:
  Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  virtual ~Channel() = default;
  // Sends header and body as one frame, gathered; header.body_size is set from body, unless the
  // header says that it lies elsewhere.
  // The body is borrowed for the call.
  [[nodiscard]] virtual std::error_code send(FrameHeader header, std::span<const std::byte> body,
                                             Deadline deadline) = 0;
  // Begins the next frame while its body is still being made: sends of the header and of the first
  // `ready` bytes of the body what is taken at once. May be called again with more of it ready;
  // send() with the same header and body then sends the rest. A channel need not begin before that.
  // REQUIRES: no other frame is sent in between; of `body` only what is ready is read, and that
  // does not change any more.
  [[nodiscard]] virtual std::error_code send_ahead(const FrameHeader& /*header*/,
                                                   std::span<const std::byte> /*body*/,
                                                   std::size_t /*ready*/) {
    return {};
  }
  [[nodiscard]] virtual std::error_code receive_header(FrameHeader& header, Deadline deadline) = 0;
  // Receives exactly body.size() bytes into place. REQUIRES: body.size() <= what the last header
  // announced and was not yet read.
  [[nodiscard]] virtual std::error_code receive_body(std::span<std::byte> body,
                                                     Deadline deadline) = 0;
  virtual void close() noexcept = 0;
  [[nodiscard]] virtual bool is_open() const noexcept = 0;
  // For wait_for_any() over several channels: poll()s as readable when a frame has begun to come
  // or the channel has failed; -1 when it is closed (which poll() leaves out).
  [[nodiscard]] virtual int fd() noexcept = 0;

  // --- tensors need not cross a channel where net/transport/gradient_memory.h carries it

  // Agrees with the ps at the other end that tensors are read where they lie from now on, or that
  // they are not: see is_in_place(). `most`: bytes of the ps's memory that there is a use for.
  // A frame that comes instead of an answer is kept for receive_header(). To be called again where
  // the ps may hold its tensors elsewhere. REQUIRES: no reply is awaited.
  [[nodiscard]] virtual std::error_code agree(std::size_t /*most*/, Deadline /*deadline*/) {
    return {};
  }
  // Asks for something that the ps answers at once, with a frame of the same kind without a body.
  // `answer`: nothing where another frame has come instead, which is kept for receive_header(). The
  // channel numbers the question. REQUIRES: no reply is awaited.
  [[nodiscard]] virtual std::error_code ask(FrameHeader /*question*/,
                                            std::optional<FrameHeader>& answer,
                                            Deadline /*deadline*/) {
    answer.reset();
    return std::make_error_code(std::errc::not_supported);
  }
  // They are: send() leaves a gradient alone that lies in the channel's memory, and it must stay
  // unchanged until it is answered. To pack it, or to send it ahead, would gain nothing.
  [[nodiscard]] virtual bool is_in_place() const noexcept { return false; }
  // A frame is there to be received, though fd() need not be ready.
  [[nodiscard]] virtual bool has_frame() const noexcept { return false; }
  // Where the last header's body lies, if it need not be received; it stays unchanged until the
  // next gradient is sent. No view: receive_body() brings it, as it does from there, too.
  [[nodiscard]] virtual BodyPlace place_of_body() const { return {}; }
};

// Resolves the name anew and connects over TCP (TCP_NODELAY), trying every address it has.
// The time until the deadline is shared among them. See net/transport/resolve.h for how names are
// looked up. `interrupt` is borrowed for the channel's life. On failure returns nullptr and sets
// `error`: of the last address tried, or why the name has none.
[[nodiscard]] std::unique_ptr<Channel> connect_tcp(const Address& address,
                                                   const Interrupt& interrupt, Deadline deadline,
                                                   std::error_code& error);

// The same, and then TLS by the credentials of the run (net/transport/tls_stream.h), for the HELLO
// that is to follow. Errors: also TlsError, and `detail` says more about it then where there is
// more to say. `credentials` is borrowed for the channel's life.
[[nodiscard]] std::unique_ptr<Channel> connect_tls(const Address& address, Credentials& credentials,
                                                   const Hello& hello, const Interrupt& interrupt,
                                                   Deadline deadline, std::error_code& error,
                                                   std::string& detail);

}  // namespace disttf::net
