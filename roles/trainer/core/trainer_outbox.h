// What a trainer's core wants done. It does none of it: the shell takes the effects after each
// call, in their order, and so does a test.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "net/wire/cluster.h"
#include "net/wire/frame.h"
#include "net/wire/generation.h"
#include "net/wire/handshake.h"
#include "roles/run/effect_queue.h"
#include "roles/run/note.h"

namespace disttf::roles {

using Clock = std::chrono::steady_clock;

// Connect to `host` and introduce this trainer for a step channel of that range: HELLO, WELCOME.
// Answered with RunSession::dialed(), at the latest at `until`, with the same `attempt`.
struct Dial {
  std::size_t range = 0;
  std::uint64_t attempt = 0;  // none is used twice
  net::TaskId host;
  std::uint8_t replica = 0;   // which of the range's hosts that is
  net::LastAnswer last = {};  // that HELLO names
  Clock::time_point until = {};
};

// What lies behind a request's header. The shell knows where; the wire format says how.
enum class RequestBody : std::uint8_t {
  kNone,
  kConfiguration,  // what the chief publishes
  kState,          // the range of the state to restore: parameters, then each optimizer tensor
  kGradient,       // of the range
};

// Send a frame over the range's open link. What the header says of the body (its size, and in what
// form or in whose memory it lies) is for the shell to add. Where that fails:
// RunSession::lost(). Once it has left: RunSession::sent().
struct SendRequest {
  std::size_t range = 0;
  net::FrameHeader header;
  RequestBody body = RequestBody::kNone;
};

// At once; not answered with lost(). Nothing to do where the link is closed already.
struct CloseLink {
  std::size_t range = 0;
};

// All ps hold this generation of the run's state, and this trainer works on it: from now on its
// heartbeats name it. A ps that was replaced while it was silent learns of it that way.
struct NameGeneration {
  net::Generation generation = 0;
};

// From now on this process is another one to everybody, with an incarnation above this
// (incarnation_above()): a ps knows of one of this trainer's before it whose clock was ahead. All
// that it has open besides links, in its old one's name, is opened anew.
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
