// Messages about steps and states, one struct for each kind of frame: which header fields the kind
// has, and what they mean. FrameHeader defines their bytes.
//
//   to_header()    returns the header of the message; the sender sets body_size and `place`
//   from_header()  reads a peer's header. Errors leave the struct unchanged: another kind
//                  (WireError::kUnexpected), a flag that the kind does not have (kBadFlags), a
//                  non-zero value in a field that the kind does not have (kBadReserved)
//
// The structs do not describe the position of the body: a header's body_size and kFlagInPlace are
// checked before. Values; callable from any thread. Bytes: docs/wire_format.md,
// tests/net/messages_test.cc.
#pragma once

#include <cstdint>
#include <system_error>
#include <variant>

#include "net/wire/bare_message.h"
#include "net/wire/frame.h"

namespace disttf::net {

// The flags for the form of a tensor in a body; none: float32.
inline constexpr std::uint16_t kTensorForms = kFlagBf16 | kFlagInt8 | kFlagInt4 | kFlagSparse;

// A trainer has its result and waits for the end of the run; from the chief: it waits for the
// others.
struct Goodbye {
  std::uint64_t request_id = 0;
  Generation generation = 0;  // of the result

  [[nodiscard]] FrameHeader to_header() const noexcept;
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept;
  friend bool operator==(const Goodbye&, const Goodbye&) = default;
};

// A trainer requests the current parameters. This makes it join the run, so it names its
// configuration: a ps that trains another one answers CONFIG instead of PARAMETERS. A push needs no
// such name, because it has the generation of an earlier pull.
struct Pull {
  std::uint64_t request_id = 0;
  std::uint64_t configuration = 0;  // RunConfig's configuration_id(); 0: not known
  bool previous = false;            // those before the newest step
  // Chief: the answer is the run's result, so no push changes the parameters any more. In runs that
  // use every gradient this is sent only to end the run before its last step.
  bool concludes = false;

  [[nodiscard]] FrameHeader to_header() const noexcept;
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept;
  friend bool operator==(const Pull&, const Pull&) = default;
};

// Elastic: a trainer requests the parameters of a later step and waits for it. (PULL with
// kFlagNext.)
struct AwaitStep {
  std::uint64_t request_id = 0;
  std::uint64_t step = 0;      // later than this one
  std::uint64_t push = 0;      // number of the newest push of its process
  bool keep_snapshot = false;  // chief: keep the resulting state under the name `push`
  Generation generation = 0;   // of `step`
  std::uint16_t form = 0;      // the form that the parameters may have

  [[nodiscard]] FrameHeader to_header() const noexcept;
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept;
  friend bool operator==(const AwaitStep&, const AwaitStep&) = default;
};

// A trainer's gradient of the ps's whole range. The answer has the resulting parameters.
struct PushPull {
  std::uint64_t request_id = 0;
  std::uint64_t step = 0;      // of the parameters that it was computed from
  std::uint64_t push = 0;      // its number among those of its process
  bool keep_snapshot = false;  // chief: keep the resulting state under the name `push`
  // The leader of a host group (net/wire/cluster.h) pushes the sum of all its gradients. A member's
  // gradient is in that sum; its own push and the answer have no body.
  bool group_sum = false;
  std::uint64_t range_begin = 0;  // floats
  Generation generation = 0;      // of `step`
  std::uint16_t form = 0;         // of the gradient; the parameters may have it, too

  [[nodiscard]] FrameHeader to_header() const noexcept;
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept;
  friend bool operator==(const PushPull&, const PushPull&) = default;
};

// Elastic: the gradient of one micro-batch; no answer.
struct Push {
  std::uint64_t request_id = 0;
  std::uint64_t step = 0;         // of the parameters that it was computed from
  std::uint64_t micro_batch = 0;  // of that step
  std::uint64_t range_begin = 0;  // floats
  Generation generation = 0;      // of `step`
  std::uint16_t form = 0;         // of the gradient

  [[nodiscard]] FrameHeader to_header() const noexcept;
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept;
  friend bool operator==(const Push&, const Push&) = default;
};

// Elastic: the micro-batches of a step that one trainer computes: every `stride`-th, beginning with
// `first`. Stride 0: none.
struct StepShare {
  std::uint32_t first = 0;
  std::uint32_t stride = 0;
  friend bool operator==(const StepShare&, const StepShare&) = default;
};

// The parameters of the ps's whole range: the answer to a pull or a push.
struct Parameters {
  std::uint64_t request_id = 0;
  std::uint64_t step = 0;         // number of updates that have led to them
  std::uint64_t counts_from = 0;  // not elastic: the trainer's next push needs a higher number
  StepShare share = {};           // elastic: what the trainer computes in the next step
  Generation generation = 0;      // of `step`
  bool finished = false;          // no more steps follow
  bool dropped = false;           // the gradient came late and was not used
  bool group_sum = false;         // no body: the leader of the host group gets them
  std::uint16_t form = 0;

  [[nodiscard]] FrameHeader to_header() const noexcept;
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept;
  friend bool operator==(const Parameters&, const Parameters&) = default;
};

// Peer discovery in a host group (net/transport/host_group.h): the leader registers with ps 0,
// which answers each member's question. Both numbers are 0 in a question, and where there is no
// leader.
struct PeerDiscovery {
  std::uint64_t request_id = 0;
  std::uint64_t listener_name = 0;
  std::uint64_t token = 0;  // that a member has to send there

  [[nodiscard]] FrameHeader to_header() const noexcept;
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept;
  friend bool operator==(const PeerDiscovery&, const PeerDiscovery&) = default;
};

// Elastic, to a waiting trainer: a micro-batch is missing.
struct Work {
  std::uint64_t request_id = 0;  // of the request by which it waits
  std::uint64_t step = 0;
  std::uint64_t micro_batch = 0;  // of that step
  Generation generation = 0;      // of `step`

  [[nodiscard]] FrameHeader to_header() const noexcept;
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept;
  friend bool operator==(const Work&, const Work&) = default;
};

// The chief sets a ps to a state: its whole range, optionally followed by each optimizer tensor.
struct Restore {
  std::uint64_t request_id = 0;
  std::uint64_t step = 0;         // of the state
  std::uint64_t range_begin = 0;  // floats
  Generation generation = 0;      // of the state
  bool finished = false;          // the result of a run that has ended before its last step

  [[nodiscard]] FrameHeader to_header() const noexcept;
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept;
  friend bool operator==(const Restore&, const Restore&) = default;
};

// The run is over, and its result is durable: from the chief to a ps, from a primary to its backup.
struct Shutdown {
  std::uint64_t request_id = 0;
  std::uint64_t step = 0;     // of the range in the result; 0: not known
  Generation generation = 0;  // of the result; 0: of any state

  [[nodiscard]] FrameHeader to_header() const noexcept;
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept;
  friend bool operator==(const Shutdown&, const Shutdown&) = default;
};

// "I am alive." Answered only to a trainer that waits for other ps.
struct Heartbeat {
  std::uint64_t request_id = 0;  // from a ps: of the request by which the trainer waits
  Generation generation = 0;     // from a trainer, on a control channel: it has joined

  [[nodiscard]] FrameHeader to_header() const noexcept;
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept;
  friend bool operator==(const Heartbeat&, const Heartbeat&) = default;
};

// With --patience: the intermediate evaluation with the lowest validation loss. The chief sends
// each ps the one it has recorded, and each answers with the later one of both, so a restarted
// chief recovers its predecessor's. A primary sends it to its backup.
struct Best {
  std::uint64_t request_id = 0;
  std::uint64_t step = 0;  // of the evaluated parameters; 0: none yet
  double loss = 0;         // of the validation set; finite

  [[nodiscard]] FrameHeader to_header() const noexcept;
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept;
  friend bool operator==(const Best&, const Best&) = default;
};

// Requests of a trainer that are answered.
using TrainerRequest = std::variant<GetConfig, Goodbye, Pull, AwaitStep, PushPull>;
[[nodiscard]] FrameHeader header_of(const TrainerRequest& request);

}  // namespace disttf::net
