// One connection of a range: its peer, the frame that is being received, and the destination of the
// rest of that frame.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "net/wire/frame.h"
#include "net/wire/handshake.h"
#include "roles/ps/core/outbox.h"
#include "roles/ps/core/shard.h"
#include "run/outcome.h"

namespace disttf::roles {

class BackupReceiver;

// What to read from a connection next.
struct BodyPlan {
  enum class Next : std::uint8_t {
    kHeader,   // a frame's header
    kInto,     // the body, or its next part, into `places` in order; then call body()
    kDiscard,  // the next `bytes` bytes, which are discarded; then call body()
    kStop,     // nothing: further input of this connection does not matter
  };
  Next next = Next::kHeader;
  std::span<const std::span<std::byte>> places = {};  // valid until body()
  std::uint64_t bytes = 0;

  // Returns whether more of the frame is to be read.
  [[nodiscard]] bool is_body() const noexcept {
    return next == Next::kInto || next == Next::kDiscard;
  }
};

struct PeerConnection {
  enum class Role : std::uint8_t {
    kTrainer,
    kCandidate,  // a newer process of the chief, whose PUBLISH has not been accepted yet
    kView,
    kPrimary,
    kBackup,
    kEvaluator,
  };  // of the peer
  // Which part of which frame is being read.
  enum class Part : std::uint8_t {
    kNone,
    kPublish,
    kRestore,
    kStaleRestore,
    kGradient,
    kPackedGradient,
    kUnwantedGradient,  // a repeat, or one that came too late
    kFencedGradient,    // of a replaced state
    kOutdatedGradient,  // elastic: its trainer has sent a newer pull since
    kView,
    kConfig,
    kOfPrimary,  // of a frame of the primary; `copy` tracks which part
  };

  PeerConnection(ConnectionId number, Role what, std::string name, const net::Hello& said)
      : id(number), role(what), peer(std::move(name)), hello(said) {}

  ConnectionId id;
  Role role;
  std::size_t rank = 0;  // of a trainer
  std::string peer;      // the peer's name in messages
  net::Hello hello;
  // The frame that is being read.
  Part part = Part::kNone;
  net::FrameHeader header;
  std::shared_ptr<Shard> shard;  // receives the frame; kept until it is complete
  PushId push;
  std::span<const float> gradient;  // the pushed gradient, once it is complete
  std::span<float> destination;     // of a gradient that is copied out of its buffer
  bool has_pushed_bad = false;      // a rejected gradient that was used, and logged, once
  std::uint64_t pulled = 0;         // the highest request_id of a PULL without *next*
  std::vector<std::byte> bytes;     // a body that is not a tensor
  std::vector<std::span<std::byte>> places;
  std::shared_ptr<BackupReceiver> copy;  // of a primary: the copy that it fills

  // Read plans for the body of that frame, or a part of it. into(): into `places`.
  BodyPlan into(Part what) {
    part = what;
    return {.next = BodyPlan::Next::kInto, .places = places};
  }
  BodyPlan into(Part what, std::span<std::byte> place) {
    places.assign(1, place);
    return into(what);
  }
  BodyPlan into_bytes(Part what, std::size_t size) {
    bytes.resize(size);
    return into(what, bytes);
  }
  // The same for a large body, a piece at a time: memory grows with the bytes that have arrived.
  // grow_bytes() is to be called when a piece has arrived and has_all_bytes() is false.
  BodyPlan into_growing_bytes(Part what) {
    bytes.clear();
    return grow_bytes(what);
  }
  BodyPlan grow_bytes(Part what) {
    const std::size_t have = bytes.size();
    bytes.resize(have + net::next_piece(have, header.body_size));
    return into(what, std::span(bytes).subspan(have));
  }
  // Returns them, and releases their memory.
  [[nodiscard]] std::string take_text() {
    const std::vector<std::byte> taken = std::exchange(bytes, {});
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }
  [[nodiscard]] bool has_all_bytes() const noexcept { return bytes.size() == header.body_size; }
  [[nodiscard]] bool is_reading_gradient() const noexcept {
    return part >= Part::kGradient && part <= Part::kOutdatedGradient;
  }
  // REQUIRES: there is a body.
  BodyPlan discard(Part what) {
    part = what;
    return {.next = BodyPlan::Next::kDiscard, .bytes = header.body_size};
  }
  // Refuses an invalid frame: logs the sentence, sends it to the peer, and closes the connection.
  BodyPlan refuse(Outbox& out, ExitCode code, const std::string& sentence) const {
    out.warn("refused " + peer + ": " + sentence);
    out.add(RefuseConnection{.id = id,
                             .request_id = header.request_id,
                             .exit_code = static_cast<std::uint8_t>(code),
                             .sentence = sentence});
    return {.next = BodyPlan::Next::kStop};
  }
};

}  // namespace disttf::roles
