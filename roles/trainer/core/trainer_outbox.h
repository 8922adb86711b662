// The effects of a trainer's core. The core performs none of them: the shell, or a test, takes them
// after each call, in order.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "net/wire/cluster.h"
#include "net/wire/frame.h"
#include "net/wire/handshake.h"
#include "run/effects.h"

namespace disttf::roles {

using Clock = std::chrono::steady_clock;

// Connect to `host` and shake hands for a step channel of that range: HELLO, WELCOME. The answer is
// RunSession::dialed(), at `until` at the latest, with the same `attempt`.
struct Dial {
  std::size_t range = 0;
  std::uint64_t attempt = 0;  // each is used once
  net::TaskId host;
  std::uint8_t replica = 0;   // which of the range's hosts it is
  net::LastAnswer last = {};  // the content of HELLO
  Clock::time_point until = {};
};

// The body of a request. The shell knows where it lies; the wire format defines its form.
enum class RequestBody : std::uint8_t {
  kNone,
  kConfiguration,  // published by the chief
  kState,          // the range of the state to restore: parameters, then each optimizer tensor
  kGradient,       // of the range
};

// Send a frame over the range's open link. The shell adds what the header says of the body (its
// size, its form, the memory in which it lies). On failure: RunSession::lost(). When it has been
// sent: RunSession::sent().
struct SendRequest {
  std::size_t range = 0;
  net::FrameHeader header;
  RequestBody body = RequestBody::kNone;
};

// Close at once, without a call of lost(). No effect if the link is closed.
struct CloseLink {
  std::size_t range = 0;
};

// All ps hold this generation of the run's state, and this trainer works on it: its heartbeats name
// it from now on. That is how a ps that was replaced while it was disconnected learns of that.
struct NameGeneration {
  net::Generation generation = 0;
};

// Take an incarnation above this one (incarnation_above()): a ps knows an earlier process of this
// trainer whose clock was ahead. Everything besides links that is open under the old incarnation is
// opened again.
struct TakeIncarnation {
  std::uint64_t above = 0;
};

class TrainerOutbox
    : public EffectQueue<SendRequest, Dial, CloseLink, NameGeneration, TakeIncarnation, Note> {
 public:
  void debug(std::string text) { note(Note::Level::kDebug, std::move(text)); }
  void info(std::string text) { note(Note::Level::kInfo, std::move(text)); }
  void warn(std::string text) { note(Note::Level::kWarning, std::move(text)); }

 private:
  void note(Note::Level level, std::string text) {
    add(Note{.level = level, .text = std::move(text)});
  }
};

}  // namespace disttf::roles
