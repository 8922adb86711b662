// What tasks say to each other about steps and states, one struct for each kind of frame: which
// fields of a header the kind has, and what they mean. FrameHeader is how they lie in bytes.
//
//   to_header()    the header that says this; body_size and `place` are for whoever sends it to set
//   from_header()  what a header says that a peer has sent. An error, and the struct is left alone,
//                  where it is of another kind (WireError::kUnexpected), has a flag that the kind
//                  does not know (kBadFlags), or anything but 0 in a field that the kind has not
//                  (kBadReserved)
//
// How the body lies is not theirs: what a header says of that (its size, kFlagInPlace) is looked at
// before. Values; callable from any thread. Bytes: docs/wire_format.md, tests/net/messages_test.cc.
#pragma once

#include <cstdint>
#include <system_error>
#include <variant>

#include "net/wire/bare_message.h"
#include "net/wire/frame.h"

namespace disttf::net {

// The flags that say in what form a tensor lies in its body; none: as float32.
inline constexpr std::uint16_t kTensorForms = kFlagBf16 | kFlagInt8 | kFlagInt4 | kFlagSparse;

// A trainer has its result, and waits for the end of the run; the chief, for the others to leave.
struct Goodbye {
  std::uint64_t request_id = 0;
  Generation generation = 0;  // of the result

  [[nodiscard]] FrameHeader to_header() const noexcept;
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept;
  friend bool operator==(const Goodbye&, const Goodbye&) = default;
};

// A trainer asks for the parameters as they are. With this it joins the run, so it names the
// configuration that it computes with: a ps that trains another one answers CONFIG in the place of
// PARAMETERS. A push needs no such name: it carries the generation that a pull has brought.
struct Pull {
  std::uint64_t request_id = 0;
  std::uint64_t configuration = 0;  // RunConfig's configuration_id(); 0: not known
  bool previous = false;            // those from before the newest step
  // Chief: what this is answered with is the run's result, so no push changes the parameters any
  // more. Where every gradient counts that is only said to end a run before its last step.
  bool concludes = false;

  [[nodiscard]] FrameHeader to_header() const noexcept;
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept;
  friend bool operator==(const Pull&, const Pull&) = default;
};

// Elastic: a trainer asks for those of a later step, and waits for it. (PULL with kFlagNext.)
struct AwaitStep {
  std::uint64_t request_id = 0;
  std::uint64_t step = 0;     // than this one
  std::uint64_t push = 0;     // the number of the newest push of its process
  bool cut = false;           // chief: keep the state it leads to, by the name of `push`
  Generation generation = 0;  // that `step` is of
  std::uint16_t form = 0;     // the parameters may come so

  [[nodiscard]] FrameHeader to_header() const noexcept;
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept;
  friend bool operator==(const AwaitStep&, const AwaitStep&) = default;
};

// A trainer's gradient of the ps's whole range, to be answered with the parameters it leads to.
struct PushPull {
  std::uint64_t request_id = 0;
  std::uint64_t step = 0;  // of the parameters that it was computed from
  std::uint64_t push = 0;  // its number among those of its process
  bool cut = false;        // chief: keep the state it leads to, by the name of `push`
  // The leader of a host group (net/wire/cluster.h) pushes the sum of all its gradients; a member's
  // is in that, and it has no body of its own, nor does its answer.
  bool group_sum = false;
  std::uint64_t range_begin = 0;  // floats
  Generation generation = 0;      // that `step` is of
  std::uint16_t form = 0;         // of the gradient; of the parameters, which may come so, too

  [[nodiscard]] FrameHeader to_header() const noexcept;
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept;
  friend bool operator==(const PushPull&, const PushPull&) = default;
};

// Elastic: the gradient of one micro-batch, not answered.
struct Push {
  std::uint64_t request_id = 0;
  std::uint64_t step = 0;         // of the parameters that it was computed from
  std::uint64_t micro_batch = 0;  // of that step
  std::uint64_t range_begin = 0;  // floats
  Generation generation = 0;      // that `step` is of
  std::uint16_t form = 0;         // of the gradient

  [[nodiscard]] FrameHeader to_header() const noexcept;
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept;
  friend bool operator==(const Push&, const Push&) = default;
};

// Elastic: the micro-batches of a step that one trainer is to compute: every `stride`-th from the
// `first` on. A stride of 0: none.
struct StepShare {
  std::uint32_t first = 0;
  std::uint32_t stride = 0;
  friend bool operator==(const StepShare&, const StepShare&) = default;
};

// The parameters of the ps's whole range, which answer a pull or a push.
struct Parameters {
  std::uint64_t request_id = 0;
  std::uint64_t step = 0;         // updates that have led to them
  std::uint64_t counts_from = 0;  // not elastic: the trainer's next push is to be numbered above it
  StepShare share = {};           // elastic: what the trainer is to compute of the next step
  Generation generation = 0;      // that `step` is of
  bool finished = false;          // no more steps are waited for
  bool dropped = false;           // the gradient came late and was not used
  bool group_sum = false;         // no body: the leader of the host group is sent it
  std::uint16_t form = 0;

  [[nodiscard]] FrameHeader to_header() const noexcept;
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept;
  friend bool operator==(const Parameters&, const Parameters&) = default;
};

// Where the leader of a host group is found (net/transport/host_group.h): it says so to ps 0, which
// tells each member that asks. Both are 0 where there is none to be found, and in a question.
struct Meet {
  std::uint64_t request_id = 0;
  std::uint64_t rendezvous = 0;
  std::uint64_t token = 0;  // what a member is to say there

  [[nodiscard]] FrameHeader to_header() const noexcept;
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept;
  friend bool operator==(const Meet&, const Meet&) = default;
};

// Elastic, to a trainer that waits: a micro-batch is missing.
struct Work {
  std::uint64_t request_id = 0;  // by which it waits
  std::uint64_t step = 0;
  std::uint64_t micro_batch = 0;  // of that step
  Generation generation = 0;      // that `step` is of

  [[nodiscard]] FrameHeader to_header() const noexcept;
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept;
  friend bool operator==(const Work&, const Work&) = default;
};

// The chief sets a ps to a state: its whole range, then, or not, each tensor of the optimizer's.
struct Restore {
  std::uint64_t request_id = 0;
  std::uint64_t step = 0;         // that the state is of
  std::uint64_t range_begin = 0;  // floats
  Generation generation = 0;      // its name
  bool finished = false;          // it is the result of a run that has ended before its last step

  [[nodiscard]] FrameHeader to_header() const noexcept;
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept;
  friend bool operator==(const Restore&, const Restore&) = default;
};

// The run is over, and its result durable: the chief says so to a ps, a primary to its backup.
struct Shutdown {
  std::uint64_t request_id = 0;
  std::uint64_t step = 0;     // of the range in the result; 0: not known
  Generation generation = 0;  // of the result; 0: of whatever state is held

  [[nodiscard]] FrameHeader to_header() const noexcept;
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept;
  friend bool operator==(const Shutdown&, const Shutdown&) = default;
};

// "I am alive." Not answered, but where a trainer waits for other ps.
struct Heartbeat {
  std::uint64_t request_id = 0;  // of a ps: by which the trainer waits
  Generation generation = 0;     // of a trainer, on a control channel: that it has joined

  [[nodiscard]] FrameHeader to_header() const noexcept;
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept;
  friend bool operator==(const Heartbeat&, const Heartbeat&) = default;
};

// With --patience: of the evaluations on the way, the one with the least validation loss. The chief
// tells each ps which one it knows, and each answers with the later one of both, so that a chief
// that is started again knows what the one before it knew. A primary tells its backup.
struct Best {
  std::uint64_t request_id = 0;
  std::uint64_t step = 0;  // whose parameters were evaluated; 0: there is none yet
  double loss = 0;         // of the validation set; finite

  [[nodiscard]] FrameHeader to_header() const noexcept;
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept;
  friend bool operator==(const Best&, const Best&) = default;
};

// What a trainer waits to be answered.
using TrainerRequest = std::variant<GetConfig, Goodbye, Pull, AwaitStep, PushPull>;
[[nodiscard]] FrameHeader header_of(const TrainerRequest& request);

}  // namespace disttf::net
