// What a range of a ps wants done. It does none of it: the shell takes the effects after each call,
// in their order, and so does a test. What the ps as a process wants is in ps_core.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "net/wire/frame.h"
#include "roles/run/effect_queue.h"
#include "roles/run/note.h"

namespace disttf::roles {

// Names a connection. 0: none. None is used twice in a process.
using ConnectionId = std::uint64_t;

struct SendFrame {
  ConnectionId to = 0;
  net::FrameHeader header;  // body_size is set by whoever sends it
  std::vector<std::byte> body;
  // The body, unchanged for as long as `owner` says: see Answer. Without an owner, of
  // an UPDATE: what follows `body`, until the effect has been taken; see ShardUpdate.
  std::span<const std::byte> borrowed = {};
  std::shared_ptr<const void> owner = {};
};

// At once: what is queued is dropped.
struct CloseConnection {
  ConnectionId id = 0;
};
// Once what is queued has left.
struct FinishConnection {
  ConnectionId id = 0;
};
// The same, with a sentence for the peer.
struct RefuseConnection {
  ConnectionId id = 0;
  std::uint64_t request_id = 0;
  std::uint8_t exit_code = 0;
  std::string sentence;
  std::uint64_t replaced_by = 0;  // as in net::Refusal
};

// The other host of the range is to be reached, for as long as RangeReplica::reaches_out().
struct ReachOut {};

// The last frames of these connections are to leave before the process ends.
struct DrainConnections {
  std::vector<ConnectionId> ids;
};

class Outbox : public EffectQueue<SendFrame, CloseConnection, FinishConnection, RefuseConnection,
                                  Note, ReachOut, DrainConnections> {
 public:
  void info(std::string text) { add(Note{.level = Note::Level::kInfo, .text = std::move(text)}); }
  void warn(std::string text) {
    add(Note{.level = Note::Level::kWarning, .text = std::move(text)});
  }
  void send(ConnectionId to, const net::FrameHeader& header, std::vector<std::byte> body = {}) {
    add(SendFrame{.to = to, .header = header, .body = std::move(body)});
  }
  // No effect where there is no connection.
  void close(ConnectionId id) {
    if (id != 0) {
      add(CloseConnection{id});
    }
  }
};

}  // namespace disttf::roles
