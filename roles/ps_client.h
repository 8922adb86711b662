// A trainer's step channels, one to every ps: what the computing thread says and hears.
//
// Each call talks to all ps at once: every request is sent before the first reply is awaited. The
// gradient is sent from where backward wrote it, parameters are received where forward reads them.
// A lost connection is opened again (the name resolved anew) and the request repeated, until
// Timeouts::peer has passed; requests are made so that a repeat does no harm. Every call throws
// Failure when the run cannot go on (138), a ps refused (its sentence and code), or a signal came.
//
// Not thread-safe: the computing thread owns it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "math/parameter_layout.h"
#include "net/backoff.h"
#include "net/channel.h"
#include "net/peer.h"
#include "roles/stop_signal.h"
#include "roles/task.h"

namespace disttf::roles {

// Where a pull or a push has brought the trainer.
struct StepReply {
  std::uint64_t step = 0;   // global step of the parameters received (ps 0's)
  bool finished = false;    // ps 0 says that training is over
  bool same_step = true;    // all ps answered with parameters of the same step
  std::size_t dropped = 0;  // ps that did not use the gradient: it came late (backup workers)
};

class PsClient {
 public:
  // `task` and `stop` must outlive the client.
  PsClient(const Task& task, const StopSignal& stop);

  // Connects to every ps, retrying those that are not up until Timeouts::start has passed; then
  // Failure names all that are missing, and why. Returns the state that all ps are in: finished
  // when any is, empty when any is.
  net::ShardState connect();

  [[nodiscard]] std::size_t ps_count() const noexcept { return links_.size(); }

  // The run's configuration (JSON), asked of ps 0; waits until the chief has published it.
  [[nodiscard]] std::string get_config();

  // How many floats the parameter vector has: known from the configuration, before the calls below.
  void set_parameter_count(std::size_t size);

  // Chief: hands every ps the configuration; then its range of the parameters at `step`. Ps 0
  // comes last: once it answers get_config, every ps is ready.
  void publish(std::string_view config_json);
  void restore(std::span<const float> parameters, std::uint64_t step);

  // parameters: the whole vector; each ps fills its range.
  StepReply pull(std::span<float> parameters);
  // The gradient of the parameters that the last pull or push_pull brought. `sequence`: this
  // process's count of pushes, from 1. Returns when every ps has applied (or dropped) it.
  StepReply push_pull(std::uint64_t sequence, std::span<const float> gradient,
                      std::span<float> parameters);

  void goodbye();
  // Chief: ends the ps; each answers once the other trainers have left, or had their time to.
  void shutdown();
  [[nodiscard]] std::string status(std::size_t ps_index);

 private:
  // One ps.
  struct Link {
    net::TaskId ps;
    std::unique_ptr<net::Channel> channel = nullptr;
    net::ShardState state = net::ShardState::kEmpty;
    std::uint64_t incarnation = 0;  // of the ps process; 0 before the first welcome
    std::uint32_t generation = 0;
    std::uint64_t step = 0;  // of the parameters last received from it
    math::Range range = {};
  };
  // One request to one ps: what to send and where the reply's body goes.
  struct Request {
    net::FrameHeader header;
    std::span<const std::byte> body = {};
    net::FrameKind reply = net::FrameKind::kAck;
    std::span<std::byte> destination = {};  // for parameters: exactly as long as the reply's body
    std::string* text = nullptr;            // for control bodies
  };

  [[nodiscard]] net::Hello hello_to(const Link& link) const;
  std::error_code open(Link& link, net::Deadline deadline);
  std::error_code send(Link& link, Request& request);
  std::error_code receive(Link& link, const Request& request, net::FrameHeader& reply);
  std::error_code receive_control_body(Link& link, std::uint64_t size, std::string& text);
  // Repeats the request over new connections until it is answered.
  net::FrameHeader recover(Link& link, Request& request, std::error_code first_error);
  net::FrameHeader exchange(Link& link, Request& request);
  // Sends all, then awaits all. `request_for` makes the request of one ps.
  template <typename RequestFor>
  StepReply exchange_all(RequestFor request_for);
  [[nodiscard]] net::Deadline transfer_deadline(std::size_t bytes) const;
  [[noreturn]] void throw_refused(const Link& link, const net::Refusal& refusal) const;
  [[nodiscard]] std::string name_of(const Link& link) const;

  const Task& task_;
  const StopSignal& stop_;
  std::vector<Link> links_;  // by ps index
  // Of the exchange under way, by ps index; kept so that a step allocates nothing.
  std::vector<Request> requests_;
  std::vector<std::error_code> errors_;
  net::Backoff backoff_;
  std::uint64_t next_request_id_ = 1;
};

}  // namespace disttf::roles
