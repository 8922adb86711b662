// One connection of a range: whose it is, which frame it is sending, and where what follows of that
// frame goes.
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
#include "roles/run/outcome.h"

namespace disttf::roles {

class BackupReceiver;

// What is to be read from a connection next.
struct BodyPlan {
  enum class Next : std::uint8_t {
    kHeader,   // a frame's header
    kInto,     // the body, or the next part of it, into `places`, in their order; then body()
    kDiscard,  // the same, `bytes` bytes to be thrown away
    kStop,     // nothing: what this connection says does not matter any more
  };
  Next next = Next::kHeader;
  std::span<const std::span<std::byte>> places = {};  // until body()
  std::uint64_t bytes = 0;

  // There is more of the frame.
  [[nodiscard]] bool is_body() const noexcept {
    return next == Next::kInto || next == Next::kDiscard;
  }
};

struct PeerConnection {
  enum class Role : std::uint8_t { kTrainer, kView, kPrimary, kBackup, kEvaluator };  // of the peer
  // Which part of which frame is being read.
  enum class Part : std::uint8_t {
    kNone,
    kPublish,
    kRestore,
    kStaleRestore,
    kGradient,
    kPackedGradient,
    kUnwantedGradient,  // a repeat, or one that came late
    kFencedGradient,    // of a state that is no more
    kOutdatedGradient,  // elastic: its trainer has pulled since
    kView,
    kConfig,
    kOfPrimary,  // of what the primary copies: `copy` knows which
  };

  PeerConnection(ConnectionId number, Role what, std::string name, const net::Hello& said)
      : id(number), role(what), peer(std::move(name)), hello(said) {}

  ConnectionId id;
  Role role;
  std::size_t rank = 0;  // of a trainer
  std::string peer;      // how messages call it
  net::Hello hello;
  // The frame that is being read.
  Part part = Part::kNone;
  net::FrameHeader header;
  std::shared_ptr<Shard> shard;  // that it goes into: kept while it does
  PushId push;
  std::span<const float> gradient;  // that is pushed, once it has come whole
  std::span<float> destination;     // of one that does not stay where it lies
  bool has_pushed_bad = false;      // a gradient that was used all the same, and told of
  std::uint64_t pulled = 0;         // the highest request_id of a PULL without *next*
  std::vector<std::byte> bytes;     // a body that is no tensor
  std::vector<std::span<std::byte>> places;
  std::shared_ptr<BackupReceiver> copy;  // of a primary: what it is copied to

  // Plans for the body of that frame, or for a part of it. Into `places`:
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
  // REQUIRES: there is a body.
  BodyPlan discard(Part what) {
    part = what;
    return {.next = BodyPlan::Next::kDiscard, .bytes = header.body_size};
  }
  // What it says makes no sense: it is told why, and closed.
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
