// Messages about steps and states, one struct for each kind of frame: which header fields the kind
// has (net/wire/message_fields.h), and what they mean. FrameHeader defines their bytes.
//
//   to_header()    returns the header of the message; the sender sets body_size and `place`
//   from_header()  reads a peer's header. Errors leave the struct unchanged: another kind
//                  (WireError::kUnexpected), a flag that the kind does not have (kBadFlags), a
//                  non-zero value in a field that the kind does not have (kBadReserved), a value
//                  that a field cannot have (kBadBody)
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
// Those of parameters: only a gradient may be sparse.
inline constexpr std::uint16_t kDenseForms = kFlagBf16 | kFlagInt8 | kFlagInt4;

// A trainer has its result and waits for the end of the run; from the chief: it waits for the
// others.
struct Goodbye {
  std::uint64_t request_id = 0;
  Generation generation = 0;  // of the result

  [[nodiscard]] static constexpr auto fields() noexcept {
    return frame(FrameKind::kGoodbye, word(&Goodbye::request_id, &FrameHeader::request_id),
                 word(&Goodbye::generation, &FrameHeader::generation));
  }
  [[nodiscard]] FrameHeader to_header() const noexcept { return header_of_fields(*this); }
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept {
    return read_fields(header, *this);
  }
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

  [[nodiscard]] static constexpr auto fields() noexcept {
    return frame(FrameKind::kPull, word(&Pull::request_id, &FrameHeader::request_id),
                 word(&Pull::configuration, &FrameHeader::sequence),
                 flag(&Pull::previous, kFlagPrevious), flag(&Pull::concludes, kFlagFinished));
  }
  [[nodiscard]] FrameHeader to_header() const noexcept { return header_of_fields(*this); }
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept {
    return read_fields(header, *this);
  }
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

  [[nodiscard]] static constexpr auto fields() noexcept {
    return frame(FrameKind::kPull, word(&AwaitStep::request_id, &FrameHeader::request_id),
                 word(&AwaitStep::step, &FrameHeader::step),
                 word(&AwaitStep::push, &FrameHeader::sequence),
                 flag(&AwaitStep::keep_snapshot, kFlagSnapshot),
                 word(&AwaitStep::generation, &FrameHeader::generation),
                 flags(&AwaitStep::form, kTensorForms))
        .with(kFlagNext);
  }
  [[nodiscard]] FrameHeader to_header() const noexcept { return header_of_fields(*this); }
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept {
    return read_fields(header, *this);
  }
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

  [[nodiscard]] static constexpr auto fields() noexcept {
    return frame(
        FrameKind::kPushPull, word(&PushPull::request_id, &FrameHeader::request_id),
        word(&PushPull::step, &FrameHeader::step), word(&PushPull::push, &FrameHeader::sequence),
        flag(&PushPull::keep_snapshot, kFlagSnapshot), flag(&PushPull::group_sum, kFlagGroupSum),
        word(&PushPull::range_begin, &FrameHeader::range_begin),
        word(&PushPull::generation, &FrameHeader::generation),
        flags(&PushPull::form, kTensorForms));
  }
  [[nodiscard]] FrameHeader to_header() const noexcept { return header_of_fields(*this); }
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept {
    return read_fields(header, *this);
  }
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

  [[nodiscard]] static constexpr auto fields() noexcept {
    return frame(
        FrameKind::kPush, word(&Push::request_id, &FrameHeader::request_id),
        word(&Push::step, &FrameHeader::step), word(&Push::micro_batch, &FrameHeader::sequence),
        word(&Push::range_begin, &FrameHeader::range_begin),
        word(&Push::generation, &FrameHeader::generation), flags(&Push::form, kTensorForms));
  }
  [[nodiscard]] FrameHeader to_header() const noexcept { return header_of_fields(*this); }
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept {
    return read_fields(header, *this);
  }
  friend bool operator==(const Push&, const Push&) = default;
};

// Elastic: the micro-batches of a step that one trainer computes: every `stride`-th, beginning with
// `first`. Stride 0: none.
struct StepShare {
  std::uint32_t first = 0;
  std::uint32_t stride = 0;
  friend bool operator==(const StepShare&, const StepShare&) = default;
};
[[nodiscard]] constexpr std::uint64_t to_word(const StepShare& share) noexcept {
  return share.first | std::uint64_t{share.stride} << 32U;
}
[[nodiscard]] constexpr bool from_word(std::uint64_t word, StepShare& share) noexcept {
  share = {.first = static_cast<std::uint32_t>(word),
           .stride = static_cast<std::uint32_t>(word >> 32U)};
  return true;
}

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

  [[nodiscard]] static constexpr auto fields() noexcept {
    return frame(
        FrameKind::kParameters, word(&Parameters::request_id, &FrameHeader::request_id),
        word(&Parameters::step, &FrameHeader::step),
        word(&Parameters::counts_from, &FrameHeader::sequence),
        word(&Parameters::share, &FrameHeader::range_begin),
        word(&Parameters::generation, &FrameHeader::generation),
        flag(&Parameters::finished, kFlagFinished), flag(&Parameters::dropped, kFlagDropped),
        flag(&Parameters::group_sum, kFlagGroupSum), flags(&Parameters::form, kDenseForms));
  }
  [[nodiscard]] FrameHeader to_header() const noexcept { return header_of_fields(*this); }
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept {
    return read_fields(header, *this);
  }
  friend bool operator==(const Parameters&, const Parameters&) = default;
};

// Peer discovery in a host group (net/memory/host_group.h): the leader registers with ps 0,
// which answers each member's question. Both numbers are 0 in a question, and where there is no
// leader.
struct PeerDiscovery {
  std::uint64_t request_id = 0;
  std::uint64_t listener_name = 0;
  std::uint64_t token = 0;  // that a member has to send there

  [[nodiscard]] static constexpr auto fields() noexcept {
    return frame(FrameKind::kPeerDiscovery,
                 word(&PeerDiscovery::request_id, &FrameHeader::request_id),
                 word(&PeerDiscovery::listener_name, &FrameHeader::step),
                 word(&PeerDiscovery::token, &FrameHeader::sequence));
  }
  [[nodiscard]] FrameHeader to_header() const noexcept { return header_of_fields(*this); }
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept {
    return read_fields(header, *this);
  }
  friend bool operator==(const PeerDiscovery&, const PeerDiscovery&) = default;
};

// Elastic, to a waiting trainer: a micro-batch is missing.
struct Work {
  std::uint64_t request_id = 0;  // of the request by which it waits
  std::uint64_t step = 0;
  std::uint64_t micro_batch = 0;  // of that step
  Generation generation = 0;      // of `step`

  [[nodiscard]] static constexpr auto fields() noexcept {
    return frame(FrameKind::kWork, word(&Work::request_id, &FrameHeader::request_id),
                 word(&Work::step, &FrameHeader::step),
                 word(&Work::micro_batch, &FrameHeader::sequence),
                 word(&Work::generation, &FrameHeader::generation));
  }
  [[nodiscard]] FrameHeader to_header() const noexcept { return header_of_fields(*this); }
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept {
    return read_fields(header, *this);
  }
  friend bool operator==(const Work&, const Work&) = default;
};

// The chief sets a ps to a state: its whole range, optionally followed by each optimizer tensor.
struct Restore {
  std::uint64_t request_id = 0;
  std::uint64_t step = 0;         // of the state
  std::uint64_t range_begin = 0;  // floats
  Generation generation = 0;      // of the state
  bool finished = false;          // the result of a run that has ended before its last step

  [[nodiscard]] static constexpr auto fields() noexcept {
    return frame(FrameKind::kRestore, word(&Restore::request_id, &FrameHeader::request_id),
                 word(&Restore::step, &FrameHeader::step),
                 word(&Restore::range_begin, &FrameHeader::range_begin),
                 word(&Restore::generation, &FrameHeader::generation),
                 flag(&Restore::finished, kFlagFinished));
  }
  [[nodiscard]] FrameHeader to_header() const noexcept { return header_of_fields(*this); }
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept {
    return read_fields(header, *this);
  }
  friend bool operator==(const Restore&, const Restore&) = default;
};

// The run is over, and its result is durable: from the chief to a ps, from a primary to its backup.
struct Shutdown {
  std::uint64_t request_id = 0;
  std::uint64_t step = 0;     // of the range in the result; 0: not known
  Generation generation = 0;  // of the result; 0: of any state

  [[nodiscard]] static constexpr auto fields() noexcept {
    return frame(FrameKind::kShutdown, word(&Shutdown::request_id, &FrameHeader::request_id),
                 word(&Shutdown::step, &FrameHeader::step),
                 word(&Shutdown::generation, &FrameHeader::generation));
  }
  [[nodiscard]] FrameHeader to_header() const noexcept { return header_of_fields(*this); }
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept {
    return read_fields(header, *this);
  }
  friend bool operator==(const Shutdown&, const Shutdown&) = default;
};

// "I am alive." Answered only to a trainer that waits for other ps.
struct Heartbeat {
  std::uint64_t request_id = 0;  // from a ps: of the request by which the trainer waits
  Generation generation = 0;     // from a trainer, on a control channel: it has joined

  [[nodiscard]] static constexpr auto fields() noexcept {
    return frame(FrameKind::kHeartbeat, word(&Heartbeat::request_id, &FrameHeader::request_id),
                 word(&Heartbeat::generation, &FrameHeader::generation));
  }
  [[nodiscard]] FrameHeader to_header() const noexcept { return header_of_fields(*this); }
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept {
    return read_fields(header, *this);
  }
  friend bool operator==(const Heartbeat&, const Heartbeat&) = default;
};

// With --patience: the intermediate evaluation with the lowest validation loss. The chief sends
// each ps the one it has recorded, and each answers with the later one of both, so a restarted
// chief recovers its predecessor's. A primary sends it to its backup.
struct Best {
  std::uint64_t request_id = 0;
  std::uint64_t step = 0;  // of the evaluated parameters; 0: none yet
  double loss = 0;         // of the validation set; finite

  [[nodiscard]] static constexpr auto fields() noexcept {
    return frame(FrameKind::kBest, word(&Best::request_id, &FrameHeader::request_id),
                 word(&Best::step, &FrameHeader::step), word(&Best::loss, &FrameHeader::sequence));
  }
  [[nodiscard]] FrameHeader to_header() const noexcept { return header_of_fields(*this); }
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept {
    return read_fields(header, *this);
  }
  friend bool operator==(const Best&, const Best&) = default;
};

// Requests of a trainer that are answered.
using TrainerRequest = std::variant<GetConfig, Goodbye, Pull, AwaitStep, PushPull>;
[[nodiscard]] inline FrameHeader header_of(const TrainerRequest& request) {
  return std::visit([](const auto& each) { return each.to_header(); }, request);
}

}  // namespace disttf::net
