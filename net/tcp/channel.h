// A channel: framed messages to one peer, used by one thread that alternates between computing,
// sending and waiting.
//
// Intentionally synchronous: the thread that computes a step exchanges frames with the ps itself,
// so no message is passed between threads on that path. Every wait has a deadline and can be
// interrupted.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <system_error>

#include "net/memory/bodies_in_place.h"
#include "net/waiting/interrupt.h"
#include "net/wire/address.h"
#include "net/wire/frame.h"

namespace disttf::net {

class Credentials;  // net/tls/credentials.h
struct Hello;       // net/wire/handshake.h

// Not thread-safe. After any error the channel is closed, because part of a frame may be lost.
// Errors: std::errc::timed_out (deadline), std::errc::operation_canceled (interrupt), WireError,
// asio::error::eof (peer closed), or a system error. A deadline bounds the whole call. A call that
// need not wait succeeds even when the deadline has passed or the interrupt is set.
class Channel {
 public:
  Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  virtual ~Channel() = default;
  // Sends header and body as one frame, gathered. Sets header.body_size from the body, unless the
  // header says that the body lies elsewhere. The body is borrowed for the call.
  [[nodiscard]] virtual std::error_code send(FrameHeader header, std::span<const std::byte> body,
                                             Deadline deadline) = 0;
  // Begins the next frame while its body is still being computed: sends as much of the header and
  // of the first `ready` bytes of the body as the socket takes at once. May be called again when
  // more is ready; send() with the same header and body then sends the rest. A channel may also
  // send nothing here. REQUIRES: no other frame is sent in between. Only the ready part of `body`
  // is read, and it does not change any more.
  [[nodiscard]] virtual std::error_code send_ahead(const FrameHeader& /*header*/,
                                                   std::span<const std::byte> /*body*/,
                                                   std::size_t /*ready*/) {
    return {};
  }
  [[nodiscard]] virtual std::error_code receive_header(FrameHeader& header, Deadline deadline) = 0;
  // Receives exactly body.size() bytes into `body`. REQUIRES: body.size() <= the unread rest of
  // what the last header announced.
  [[nodiscard]] virtual std::error_code receive_body(std::span<std::byte> body,
                                                     Deadline deadline) = 0;
  virtual void close() noexcept = 0;
  [[nodiscard]] virtual bool is_open() const noexcept = 0;
  // For wait_for_any() over several channels: readable when a frame has begun to arrive or the
  // channel has failed. -1 when closed, which poll() skips.
  [[nodiscard]] virtual int fd() noexcept = 0;

  // --- tensors in shared memory, where net/tcp/gradient_memory.h wraps the channel

  // Agrees with the ps whether tensors are read in place from now on: see is_in_place(). `most`:
  // the most bytes of the ps's memory to map. A frame that arrives instead of an answer is kept for
  // receive_header(). To be called again when the ps may have moved its tensors. REQUIRES: no reply
  // is awaited.
  [[nodiscard]] virtual std::error_code agree(std::size_t /*most*/, Deadline /*deadline*/) {
    return {};
  }
  // Sends a question that the ps answers at once with a frame of the same kind without a body.
  // `answer`: nullopt if another frame has arrived instead, which is kept for receive_header(). The
  // channel sets the request_id. REQUIRES: no reply is awaited.
  [[nodiscard]] virtual std::error_code ask(FrameHeader /*question*/,
                                            std::optional<FrameHeader>& answer,
                                            Deadline /*deadline*/) {
    answer.reset();
    return std::make_error_code(std::errc::not_supported);
  }
  // Whether tensors are read in place. Then send() does not copy a gradient that lies in the
  // channel's memory, and the gradient must stay unchanged until it is answered. Packing it or
  // sending it ahead would gain nothing.
  [[nodiscard]] virtual bool is_in_place() const noexcept { return false; }
  // Whether a frame can be received although fd() may not be ready.
  [[nodiscard]] virtual bool has_frame() const noexcept { return false; }
  // Where the last header's body lies if it need not be received; it stays unchanged until the next
  // gradient is sent. Without a view the body has to be received. receive_body() works in both
  // cases.
  [[nodiscard]] virtual BodyLocation body_location() const { return {}; }
};

// Resolves the name again and connects over TCP (TCP_NODELAY). Tries every address of the name and
// divides the time until the deadline among them. See net/tcp/lookup.h for name resolution.
// `interrupt` is borrowed for the channel's life. On failure returns nullptr and sets `error`: that
// of the last address tried, or why the name has no address.
[[nodiscard]] std::unique_ptr<Channel> connect_tcp(const Address& address,
                                                   const Interrupt& interrupt, Deadline deadline,
                                                   std::error_code& error);

// As connect_tcp(), followed by a TLS handshake with the credentials of the run
// (net/tls/tls_stream.h) for the HELLO that follows. Errors: also TlsError; `detail` then
// explains it further if there is more to say. `credentials` is borrowed for the channel's life.
[[nodiscard]] std::unique_ptr<Channel> connect_tls(const Address& address, Credentials& credentials,
                                                   const Hello& hello, const Interrupt& interrupt,
                                                   Deadline deadline, std::error_code& error,
                                                   std::string& detail);

}  // namespace disttf::net
