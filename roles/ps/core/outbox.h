// The effects of a range of a ps. The core performs none of them: the shell, or a test, takes them
// after each call, in order. The effects of the ps as a process are in ps_core.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "net/wire/frame.h"
#include "run/effects.h"

namespace disttf::roles {

// Names a connection. 0: none. An id is used once per process.
using ConnectionId = std::uint64_t;

struct SendFrame {
  ConnectionId to = 0;
  net::FrameHeader header;  // the sender sets body_size
  std::vector<std::byte> body;
  // A body that is not copied. With an `owner` it does not change while the owner lives: see
  // Answer. Without one, in an UPDATE, it follows `body` and is valid until the effect has been
  // taken: see ShardUpdate.
  std::span<const std::byte> borrowed = {};
  std::shared_ptr<const void> owner = {};
};

// Closes the connection at once, and drops its queue.
struct CloseConnection {
  ConnectionId id = 0;
};
// Closes the connection once its queue has been sent.
struct FinishConnection {
  ConnectionId id = 0;
};
// The same, after a refusal with a sentence for the peer.
struct RefuseConnection {
  ConnectionId id = 0;
  std::uint64_t request_id = 0;
  std::uint8_t exit_code = 0;
  std::string sentence;
  std::uint64_t replaced_by = 0;  // as in net::Refusal
};

// Connect to the other host of the range, and retry for as long as
// RangeHost::connects_to_backup().
struct ConnectToBackup {};

// The last frames of these connections are to be sent before the process ends.
struct DrainConnections {
  std::vector<ConnectionId> ids;
};

class Outbox : public EffectQueue<SendFrame, CloseConnection, FinishConnection, RefuseConnection,
                                  Note, ConnectToBackup, DrainConnections> {
 public:
  void info(std::string text) { add(Note{.level = Note::Level::kInfo, .text = std::move(text)}); }
  void warn(std::string text) {
    add(Note{.level = Note::Level::kWarning, .text = std::move(text)});
  }
  void send(ConnectionId to, const net::FrameHeader& header, std::vector<std::byte> body = {}) {
    add(SendFrame{.to = to, .header = header, .body = std::move(body)});
  }
  // A text that is not copied: many connections may wait for a long one.
  void send_text(ConnectionId to, const net::FrameHeader& header,
                 std::shared_ptr<const std::string> text) {
    const std::span<const std::byte> bytes = std::as_bytes(std::span(*text));
    add(SendFrame{
        .to = to, .header = header, .body = {}, .borrowed = bytes, .owner = std::move(text)});
  }
  // No effect if `id` is 0.
  void close(ConnectionId id) {
    if (id != 0) {
      add(CloseConnection{id});
    }
  }
};

}  // namespace disttf::roles
