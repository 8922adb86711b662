// A trainer's step channel to one ps, as roles/trainer/core/run_session.h has it opened and used:
// how requests and replies travel. Tensors do so in frames, in the form that the run's wire format
// says, or stay where they lie, where the two have agreed on that.
//
// Not thread-safe: the computing thread owns it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "math/parameter_layout.h"
#include "net/transport/channel.h"
#include "net/transport/faulty_channel.h"
#include "net/transport/gradient_memory.h"
#include "net/wire/messages.h"
#include "roles/monitor/shell/meters.h"
#include "roles/process/stop_signal.h"
#include "roles/run/task.h"
#include "roles/run/wire_format.h"
#include "roles/trainer/core/dialer.h"
#include "roles/trainer/core/trainer_outbox.h"

namespace disttf::roles {

// After an error the channel is closed: std::errc::operation_canceled where a signal came.
class PsLink {
 public:
  // `task` and `stop` must outlive the link.
  PsLink(const Task& task, const StopSignal& stop, std::size_t ps_index);

  // Of the run, known from its configuration.
  struct Run {
    math::Range range = {};  // of the vector, that the ps holds
    WireFormat wire = {};    // of gradients and parameters
    // Where gradients lie; outlives the link. nullptr: anywhere, and they are sent.
    net::GradientMemory* memory = nullptr;
    std::size_t most_placed = 0;  // bytes of the ps's memory that the run has a use for
  };
  void prepare(const Run& run);

  // Throws Failure when a signal came, or this process has no descriptor left.
  [[nodiscard]] DialAnswer open(const Dial& dial, std::uint64_t incarnation);
  void close() noexcept;

  // A signal does not cut it short unless it has to wait: a push that one ps has and another has
  // not would leave the ps at different steps, of which no checkpoint can be made.
  [[nodiscard]] std::error_code send(net::FrameHeader header, std::span<const std::byte> body);
  // The same of a push; `gradient` is of the range. Where it lies in Run::memory it stays unchanged
  // until the push, or the pull behind it, is answered.
  [[nodiscard]] std::error_code push(net::FrameHeader header, std::span<const float> gradient);
  // Begins a push_pull of which the first `ready` floats of the gradient are final; push() with the
  // same header follows. REQUIRES: sends_ahead().
  void push_ahead(const net::FrameHeader& header, std::span<const float> gradient,
                  std::size_t ready);
  // Whether that begins at once: where the gradient is sent as it lies.
  [[nodiscard]] bool sends_ahead() const noexcept;

  // The next frame's header, or that of the answer in the ps's memory; it is `now`.
  [[nodiscard]] std::error_code receive_header(net::FrameHeader& header, net::Deadline now);
  // The body that the header has announced: floats, exactly as many as the range. `place` set:
  // parameters that can be read where they lie stay there, and this says where.
  [[nodiscard]] std::error_code receive_parameters(const net::FrameHeader& header,
                                                   std::span<float> parameters,
                                                   net::BodyPlace* place);
  // REQUIRES: header.body_size <= net::kMaxControlBodyBytes.
  [[nodiscard]] std::error_code receive_text(const net::FrameHeader& header, std::string& text);
  [[nodiscard]] net::Refusal receive_refusal(const net::FrameHeader& header);

  // Agrees with the ps how tensors travel: whenever a run is joined, and before the first push over
  // a channel that was opened since, or since unsettle(). REQUIRES: nothing else is asked of it.
  // Waits for an answer, until settle_until() at the latest.
  [[nodiscard]] std::error_code settle();
  // The same of where the leader of the trainer's host group is found. REQUIRES: Run::memory.
  [[nodiscard]] std::error_code ask(net::Meet& meeting);
  [[nodiscard]] bool is_settled() const noexcept { return is_settled_ || run_.memory == nullptr; }
  // The memory that gradients lie in is another one: settle() before the next push.
  void unsettle() noexcept {
    is_settled_ = false;
    was_in_place_ = false;
  }
  // It has been opened: whoever opens it again gives up a channel.
  [[nodiscard]] bool was_open() const noexcept { return was_open_; }
  // The memory has been handed over to a ps.
  [[nodiscard]] bool was_in_place() const noexcept { return was_in_place_; }
  [[nodiscard]] net::Deadline settle_until() const {
    return net::Clock::now() + task_.timeouts.silence;
  }
  // Gradients and parameters stay where they lie.
  [[nodiscard]] bool is_in_place() const noexcept { return is_open() && channel_->is_in_place(); }
  // receive_header() has something to take, whether or not fd() is ready.
  [[nodiscard]] bool has_frame() const noexcept { return is_open() && channel_->has_frame(); }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  // In frames, of all its channels: not what stays where it lies.
  [[nodiscard]] std::uint64_t bytes_sent() const noexcept { return bytes_sent_; }
  [[nodiscard]] std::uint64_t bytes_received() const noexcept { return bytes_received_; }

  [[nodiscard]] bool is_open() const noexcept { return channel_ && channel_->is_open(); }
  [[nodiscard]] int fd() const noexcept { return channel_ ? channel_->fd() : -1; }

 private:
  void carry();
  [[nodiscard]] std::error_code transmit(const net::FrameHeader& header,
                                         std::span<const std::byte> body, Codec codec);
  void count_received(Codec codec, std::size_t bytes) noexcept;
  [[nodiscard]] std::error_code receive_rounded(std::uint64_t size, std::span<float> parameters);
  [[nodiscard]] std::error_code bad_body() noexcept;

  const Task& task_;
  const StopSignal& stop_;
  const std::size_t ps_index_;
  const std::string name_;                    // "ps 1 (10.0.0.7:2222)"
  std::optional<net::FaultInjector> faults_;  // testing
  TrainerMeters* const meters_;               // null: nobody measures
  std::uint64_t bytes_sent_ = 0;
  std::uint64_t bytes_received_ = 0;
  bool was_open_ = false;
  std::unique_ptr<net::Channel> channel_;
  Run run_;
  bool is_settled_ = false;  // the channel
  bool was_in_place_ = false;
  std::vector<std::byte> packed_;  // a tensor that is not raw floats, as it is sent or received
};

}  // namespace disttf::roles
