// The requester's half of the handshake: connect, HELLO, WELCOME.
//
// Callable from any thread; see net/transport/channel.h for errors and waits.
#pragma once

#include <memory>
#include <system_error>

#include "net/transport/channel.h"
#include "net/wire/address.h"
#include "net/wire/handshake.h"

namespace disttf::net {

struct OpenedChannel {
  std::unique_ptr<Channel> channel;  // null unless welcomed
  Welcome welcome;                   // valid when channel is set
  Refusal refusal;                   // valid when error is WireError::kRefused
  std::error_code error;
};

// Connects to `address`, introduces this task and waits for the answer, all before `deadline`.
// With `credentials` by TLS and not otherwise: a peer that has others, or none, is kRefused.
// Retrying is the caller's (net/wire/backoff.h): everything but kRefused may mend itself.
[[nodiscard]] OpenedChannel open_channel(const Address& address, const Hello& hello,
                                         const Interrupt& interrupt, Deadline deadline,
                                         Credentials* credentials = nullptr);

// Receives the body of a REFUSED frame whose header was just read. The channel is closed
// afterwards, as the peer closes too. A body that does not decode gives a stock sentence.
[[nodiscard]] Refusal receive_refusal(Channel& channel, const FrameHeader& header,
                                      Deadline deadline);

}  // namespace disttf::net
