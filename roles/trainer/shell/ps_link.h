// A trainer's step channel to one ps: opens it, sends requests, takes replies.
//
// A link knows which state of the ps its trainer works on: the ps's process (incarnation) and the
// generation of the run. When the ps turns out to hold another one, calls throw StateLost.
//
// With --ps_replicas 2 two ps host each range, and a link is to whichever of them is the primary:
// opening it asks the one that was last, then the other.
//
// Not thread-safe: the computing thread owns it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "math/parameter_layout.h"
#include "net/transport/answer_slot.h"
#include "net/transport/channel.h"
#include "net/transport/faulty_channel.h"
#include "net/transport/peer.h"
#include "net/transport/shared_memory.h"
#include "roles/process/stop_signal.h"
#include "roles/run/task.h"
#include "roles/run/wire_format.h"

namespace disttf::roles {

// The ps does not hold what this trainer computed with: it was restarted and is empty, or the
// chief has set the run to another state. The trainer is to join again.
class StateLost : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override { return "a ps lost its state"; }
};

// The run is over, and this trainer has come too late to have a part in its end.
class RunOver : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override { return "the run is over"; }
};

// One request: what to send and where the reply's body goes.
struct PsRequest {
  net::FrameHeader header;
  std::span<const std::byte> body = {};
  std::span<const float> gradient = {};  // of a push, in place of `body`; the wire format says how
  net::FrameKind reply = net::FrameKind::kAck;
  std::span<std::byte> destination = {};  // for parameters: floats, exactly as many as the range
  std::string* text = nullptr;            // for control bodies
  // Set: parameters that lie in the ps's memory stay there, and this says where.
  net::JoinedView::Piece* place = nullptr;
};

// One attempt to connect and shake hands; more attempts follow.
inline constexpr std::chrono::seconds kConnectAttempt{5};
// And no longer than a quarter of the time that there is for all of them: where this process is
// stopped in one, all that the attempt might have taken is taken for spent.
[[nodiscard]] constexpr net::Clock::duration attempt_limit(std::chrono::seconds all) noexcept {
  return std::min<net::Clock::duration>(kConnectAttempt, net::Clock::duration(all) / 4);
}

// What a link must carry at least, for the deadline of a whole transfer: 1 Mbit/s.
inline constexpr std::size_t kSlowestBytesPerSecond = 128 * 1024;

class PsLink {
 public:
  // `task` and `stop` must outlive the link.
  // `replicated`: the run has replicas; set by whichever link is told so first.
  PsLink(const Task& task, const StopSignal& stop, std::size_t ps_index, bool& replicated);

  // Opens the channel if it is closed. Throws Failure when the ps refuses this task or a signal
  // came, StateLost when the link is pinned and the ps holds another state.
  [[nodiscard]] std::error_code open(net::Deadline deadline);
  // std::errc::operation_canceled: a signal came, and it had to wait.
  [[nodiscard]] std::error_code send(PsRequest& request);
  // Begins a PUSH_PULL of which the first `ready` floats of the gradient are final; send() follows.
  // Where the gradient is not sent as it lies this waits for that.
  void send_ahead(const PsRequest& request, std::size_t ready);
  // Whether that begins at once.
  [[nodiscard]] bool sends_ahead() const noexcept;
  // One frame. `is_reply` stays false when it was a heartbeat (the ps waits for other trainers) or
  // WORK (it waits for this one); which of them is in `reply.kind`.
  // Throws Failure when the ps refuses, StateLost when it says that the state has moved on.
  [[nodiscard]] std::error_code receive(const PsRequest& request, net::FrameHeader& reply,
                                        bool& is_reply);
  // Tells the ps where the gradients that will be pushed lie, and, so many bytes from there, the
  // word that says whether this trainer sleeps; asks for its parameters. Where it agrees, no tensor
  // crosses the socket from now on. Throws as receive() does.
  [[nodiscard]] std::error_code share(const net::SharedOffer& gradients, std::size_t sleep_word);
  // An answer to what was sent last lies in the ps's memory: receive() takes it from there.
  [[nodiscard]] bool has_answer() const noexcept;
  // Sends a frame that has no reply.
  [[nodiscard]] std::error_code tell(const net::FrameHeader& header,
                                     std::span<const float> gradient);
  // Sends, and receives until the reply.
  [[nodiscard]] std::error_code exchange(PsRequest& request, net::FrameHeader& reply);
  void close() noexcept;

  void unshare() noexcept {
    parameters_.reset();
    answers_at_ = 0;
  }
  [[nodiscard]] bool shares_memory() const noexcept { return parameters_ != nullptr; }

  // From now on only the state that the ps is known to hold will do.
  void pin() noexcept { pinned_ = true; }
  void unpin() noexcept { pinned_ = false; }

  [[nodiscard]] bool is_open() const noexcept { return channel_ && channel_->is_open(); }
  [[nodiscard]] int fd() const noexcept { return channel_ ? channel_->fd() : -1; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  // The same of the host that it is connected to.
  [[nodiscard]] std::string host_name() const {
    return describe(task_.cluster, host_of_range(task_.cluster, ps_.index, replica_));
  }
  [[nodiscard]] std::size_t index() const noexcept { return ps_.index; }
  // Pushes of this trainer's that the range has used.
  std::uint64_t acknowledged = 0;
  // What the ps last said of itself.
  [[nodiscard]] net::ShardState state() const noexcept { return state_; }
  [[nodiscard]] std::uint32_t generation() const noexcept { return generation_; }
  void set_generation(std::uint32_t generation) noexcept { generation_ = generation; }

  std::uint64_t step = 0;       // of the parameters last received from it
  math::Range range = {};       // of the vector, that it holds
  WireFormat wire = {};         // of gradients and parameters
  std::size_t most_shared = 0;  // bytes of its memory that the run has a use for

 private:
  // The next frame's header, or that of the answer in the ps's memory.
  [[nodiscard]] std::error_code receive_header(net::FrameHeader& reply);
  // REQUIRES: answers_at_ != 0.
  [[nodiscard]] net::AnswerSlotView answer_slot() const noexcept {
    return net::AnswerSlotView(parameters_->bytes().subspan(answers_at_, net::kAnswerSlotBytes));
  }
  [[nodiscard]] std::error_code receive_rounded(std::uint64_t size,
                                                std::span<std::byte> destination);
  [[nodiscard]] std::error_code take_shared(const net::FrameHeader& reply,
                                            const PsRequest& request);
  [[nodiscard]] std::error_code open_host(net::Deadline deadline);
  [[nodiscard]] std::error_code receive_text(std::uint64_t size, std::string& text);
  [[nodiscard]] net::Deadline transfer_deadline(std::size_t bytes) const;
  [[noreturn]] void throw_refused(const net::Refusal& refusal) const;

  const Task& task_;
  const StopSignal& stop_;
  const net::TaskId ps_;                      // whose range it is
  const std::string name_;                    // "ps 1 (10.0.0.7:2222)"
  std::optional<net::FaultInjector> faults_;  // testing
  std::unique_ptr<net::Channel> channel_;
  std::shared_ptr<const net::SharedView> parameters_;  // the ps's memory; null: in its frames
  std::uint64_t answers_at_ = 0;   // where in it answers appear, in bytes; 0: in frames
  std::uint64_t old_answers_ = 0;  // net::answer_count() from before the last request
  net::ShardState state_ = net::ShardState::kEmpty;
  std::uint64_t incarnation_ = 0;  // of the ps's process
  std::uint32_t generation_ = 0;
  bool pinned_ = false;
  bool& replicated_;
  std::uint8_t replica_ = 0;  // which of the range's hosts it is connected to, or tries next
  std::uint64_t next_request_id_ = 1;
  std::uint64_t begun_ = 0;        // the id of a request that send_ahead() has begun; 0: none
  std::vector<std::byte> packed_;  // a tensor that is not raw floats, as it is sent or received
};

}  // namespace disttf::roles
