// A trainer's step channel to one ps, which roles/trainer/core/run_session.h opens and uses: how
// requests and replies travel. Tensors travel in frames, in the run's wire format, or stay in
// shared memory if both sides have agreed on that.
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
#include "net/tcp/channel.h"
#include "net/tcp/faulty_channel.h"
#include "net/tcp/gradient_memory.h"
#include "net/wire/messages.h"
#include "roles/trainer/core/dialer.h"
#include "roles/trainer/core/trainer_outbox.h"
#include "run/monitor/shell/meters.h"
#include "run/process/stop_signal.h"
#include "run/task.h"
#include "run/wire_format.h"

namespace disttf::roles {

// After an error the channel is closed. std::errc::operation_canceled: a signal came.
class PsLink {
 public:
  // `task` and `stop` must outlive the link.
  PsLink(const Task& task, const StopSignal& stop, std::size_t ps_index);

  // The run, known from its configuration.
  struct Run {
    math::Range range = {};  // the part of the vector that the ps holds
    WireFormat wire = {};    // of gradients and parameters
    // Where gradients lie; outlives the link. nullptr: anywhere, and they are sent.
    net::GradientMemory* memory = nullptr;
    std::size_t most_placed = 0;  // bytes of the ps's memory that the run can use
  };
  void prepare(const Run& run);

  // Throws Failure on a signal, or if this process has no file descriptor left.
  [[nodiscard]] DialAnswer open(const Dial& dial, std::uint64_t incarnation);
  void close() noexcept;

  // Sends a frame. A signal interrupts it only if it has to wait: a push that reaches one ps but
  // not another would leave the ps at different steps, and no checkpoint could be made of them.
  [[nodiscard]] std::error_code send(net::FrameHeader header, std::span<const std::byte> body);
  // The same for a push; `gradient` is that of the range. If it lies in Run::memory, it must not
  // change until the push, or the pull after it, is answered.
  [[nodiscard]] std::error_code push(net::FrameHeader header, std::span<const float> gradient);
  // Begins a push_pull whose first `ready` floats of the gradient are final; push() with the same
  // header follows. REQUIRES: sends_ahead().
  void push_ahead(const net::FrameHeader& header, std::span<const float> gradient,
                  std::size_t ready);
  // Returns whether that starts sending at once: the gradient is sent unconverted.
  [[nodiscard]] bool sends_ahead() const noexcept;

  // Receives the next frame's header, or that of an answer in the ps's memory. The current time is
  // `now`.
  [[nodiscard]] std::error_code receive_header(net::FrameHeader& header, net::Deadline now);
  // Receives the body that the header has announced: exactly as many floats as the range. If
  // `place` is set, parameters that can be read in shared memory stay there, and `place` says
  // where.
  [[nodiscard]] std::error_code receive_parameters(const net::FrameHeader& header,
                                                   std::span<float> parameters,
                                                   net::BodyLocation* place);
  // REQUIRES: header.body_size is as StepExchange allows.
  [[nodiscard]] std::error_code receive_text(const net::FrameHeader& header, std::string& text);
  [[nodiscard]] net::Refusal receive_refusal(const net::FrameHeader& header);

  // Agrees with the ps on how tensors are transferred: whenever a run is joined, and before the
  // first push over a channel opened since, or after unsettle(). Waits for an answer, until
  // settle_until() at most. REQUIRES: no other request to the ps is outstanding.
  [[nodiscard]] std::error_code settle();
  // Peer discovery: exchanges where the leader of the trainer's host group is found. REQUIRES:
  // Run::memory.
  [[nodiscard]] std::error_code ask(net::PeerDiscovery& discovery);
  [[nodiscard]] bool is_settled() const noexcept { return is_settled_ || run_.memory == nullptr; }
  // Gradients lie in other memory now: settle() before the next push.
  void unsettle() noexcept {
    is_settled_ = false;
    was_in_place_ = false;
  }
  // Returns whether it has been opened: opening it again abandons a channel.
  [[nodiscard]] bool was_open() const noexcept { return was_open_; }
  // Returns whether the memory has been handed over to a ps.
  [[nodiscard]] bool was_in_place() const noexcept { return was_in_place_; }
  [[nodiscard]] net::Deadline settle_until() const {
    return net::Clock::now() + task_.timeouts.heartbeat_timeout;
  }
  // Returns whether gradients and parameters stay in shared memory.
  [[nodiscard]] bool is_in_place() const noexcept { return is_open() && channel_->is_in_place(); }
  // Returns whether receive_header() has something to read, even if fd() is not ready.
  [[nodiscard]] bool has_frame() const noexcept { return is_open() && channel_->has_frame(); }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  // Bytes in frames, of all its channels, without what stays in shared memory.
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
  TrainerMeters* const meters_;               // null: metrics are off
  std::uint64_t bytes_sent_ = 0;
  std::uint64_t bytes_received_ = 0;
  bool was_open_ = false;
  std::unique_ptr<net::Channel> channel_;
  Run run_;
  bool is_settled_ = false;  // whether the channel is
  bool was_in_place_ = false;
  std::vector<std::byte> packed_;  // a tensor in its wire form, if that is not raw floats
};

}  // namespace disttf::roles
