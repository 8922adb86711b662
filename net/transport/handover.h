// How a descriptor gets from one task of a machine into another: over a socket of the machine's own
// (AF_UNIX), of which the two have told each other over the connection that they have already.
//
// A trainer listens at a name that it has drawn (a Rendezvous), and says over the connection what
// the name is and what to say there. The ps connects, says that token and hands its descriptor
// over; the trainer hands its own over the same way, with the token that the ps has told it. The
// name is no secret, as everybody may read /proc/net/unix; the tokens are: they have crossed the
// connection alone, which is encrypted where the run has a secret. Besides, the kernel says of
// either end which user it is, and another one than this process's own gets nothing and gives
// nothing.
//
// A primary, or a chief, is in the trainer's place, its backup in the ps's: body_slots.h.
//
// The name is abstract: in no file system, of the network namespace. Tasks in containers that share
// no network do not find each other, and that is all that happens.
//
// Nothing here waits. Whoever is told of something over the connection finds it done: a descriptor
// is handed over before that is said.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <system_error>

#include "net/transport/descriptor.h"

namespace disttf::net {

// From the kernel's generator; nothing where it has none to give.
[[nodiscard]] std::optional<std::uint64_t> draw_token() noexcept;

// What has been said and handed over by a peer of the same user.
struct HandedOver {
  Descriptor peer;  // the socket, for an answer
  Descriptor what;
};

class Rendezvous {
 public:
  // nullptr, and `error` set, where the system has no such sockets.
  [[nodiscard]] static std::unique_ptr<Rendezvous> open(std::error_code& error);

  // By which meet() finds it; not 0.
  [[nodiscard]] std::uint64_t name() const noexcept { return name_; }
  // Of those that have connected, the first that is a process of the same user, has said the token
  // and has handed over one descriptor. All others are closed. Nothing: there is none of that kind.
  [[nodiscard]] std::optional<HandedOver> admit(std::uint64_t token) const;

 private:
  Rendezvous(Descriptor listener, std::uint64_t name) noexcept;

  const Descriptor listener_;
  const std::uint64_t name_;
};

// A socket to the rendezvous of that name; closed, and `error` set, where there is none, or it is
// another user's.
[[nodiscard]] Descriptor meet(std::uint64_t name, std::error_code& error);

// Says the token and hands `what` over, which stays open here.
[[nodiscard]] std::error_code hand_over(const Descriptor& peer, std::uint64_t token, int what);

// What the peer has handed over with the token; closed: it has said or handed over something else,
// or nothing yet.
[[nodiscard]] Descriptor take_over(const Descriptor& peer, std::uint64_t token);

}  // namespace disttf::net
