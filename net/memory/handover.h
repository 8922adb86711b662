// Passes a file descriptor from one task of a machine to another over a Unix-domain socket
// (AF_UNIX). The two tasks discover each other over the connection that they already have.
//
// A trainer listens at a random name (a PeerListener) and sends the name and a token over the
// connection. The ps connects to that name, sends the token and hands its descriptor over. The
// trainer hands its own over in the same way, with a token that the ps has sent. The name is no
// secret, because every process may read /proc/net/unix. The tokens are secret: they have crossed
// only the connection, which is encrypted where the run has a secret. In addition the kernel
// reports the user of either end; a process of another user gets nothing and can hand over nothing.
//
// A primary, or a chief, takes the trainer's part and its backup the ps's: body_ring.h.
//
// The name is abstract: it is in no file system and belongs to the network namespace. Tasks in
// containers that share no network do not find each other and send frames instead.
//
// Nothing here blocks. A task that is notified over the connection finds the descriptor already
// there: it is handed over before the notification is sent.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <system_error>

#include "net/waiting/descriptor.h"

namespace disttf::net {

// From the kernel's random generator; nullopt where that fails.
[[nodiscard]] std::optional<std::uint64_t> draw_token() noexcept;

// A descriptor from a peer of the same user.
struct HandedOver {
  Descriptor peer;  // the socket, for an answer
  Descriptor what;
};

class PeerListener {
 public:
  // nullptr, and `error` set, where the system has no such sockets.
  [[nodiscard]] static std::unique_ptr<PeerListener> open(std::error_code& error);

  // The name for connect_to_peer_listener(); not 0.
  [[nodiscard]] std::uint64_t name() const noexcept { return name_; }
  // Of the peers that have connected, returns the first one of the same user that has sent the
  // token together with one descriptor. All others are closed. nullopt: there is no such peer.
  [[nodiscard]] std::optional<HandedOver> admit(std::uint64_t token) const;

 private:
  PeerListener(Descriptor listener, std::uint64_t name) noexcept;

  const Descriptor listener_;
  const std::uint64_t name_;
};

// Connects to the peer listener of that name. Returns a closed descriptor, and sets `error`, where
// there is none, or where it belongs to another user.
[[nodiscard]] Descriptor connect_to_peer_listener(std::uint64_t name, std::error_code& error);

// Sends the token together with `what`, which stays open here.
[[nodiscard]] std::error_code hand_over(const Descriptor& peer, std::uint64_t token, int what);

// Returns the descriptor that the peer has sent with the token. Closed: the peer has sent something
// else, or nothing yet.
[[nodiscard]] Descriptor take_over(const Descriptor& peer, std::uint64_t token);

}  // namespace disttf::net
