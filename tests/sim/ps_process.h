// A simulated ps: the real core, and what its shell does, without sockets.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/transport/interrupt.h"
#include "roles/ps/core/range_replica.h"
#include "tests/sim/checks.h"
#include "tests/sim/process.h"

namespace disttf::sim {

class PsProcess final : public Process {
 public:
  PsProcess(World& world, Network& network, Checks& checks, roles::Task task, std::size_t node,
            OnEnd on_end);

  [[nodiscard]] bool listens() const noexcept override { return is_alive() && !verdict_; }
  void start() override;
  void terminate() override;
  void accept(ConnectionId id, const net::Hello& hello) override;
  void on_header(ConnectionId id, const Frame& frame) override;
  void on_body(ConnectionId id, const Frame& frame, std::size_t bytes) override;
  void on_closed(ConnectionId id) override;
  // "range 0: primary, step 12, generation 1"
  [[nodiscard]] std::string describe_state() const;

 protected:
  void happen(std::uint32_t what, std::uint64_t a, std::uint64_t b) override;
  void bury() override;

 private:
  struct Hosted {
    std::unique_ptr<roles::RangeReplica> core;
    // Reaches the other host, where it is to.
    ConnectionId dialled = 0;
    std::uint64_t attempts = 0;
    // As last seen.
    net::Standing standing = net::Standing::kOnly;
    std::uint64_t standings = 0;  // changes of it
    std::uint64_t step = 0;
    std::uint32_t generation = 0;
    bool held = false;
    std::uint32_t view = 0;
  };
  struct Served {
    net::Hello hello;
    Hosted* range = nullptr;  // of a control channel: none
    roles::BodyPlan plan;
    net::FrameHeader push;  // the newest PUSH_PULL
    Time heard{};
  };

  [[nodiscard]] Hosted& range_of(const net::Hello& hello);
  void do_effects(Hosted& range);
  void look(Hosted& range);
  void end_connection(ConnectionId id);
  void read(ConnectionId id, Served& served, const Frame& frame, std::size_t bytes);
  void check_not_replaced(const Hosted& range, const net::Hello& from, std::uint32_t generation);
  void check_nobody_waits(const Hosted& range);
  void check_answer(const net::FrameHeader& answer, ConnectionId to);
  void serve_state(ConnectionId id, Hosted& range, const net::FrameHeader& header);
  void watch();
  void reach(std::size_t index);
  void fail(int code, const std::string& sentence);
  void range_ended();
  [[nodiscard]] bool is_over() const;
  void forgive(Duration missed);
  void close_silent_channels();

  void apply(Hosted& range, roles::SendFrame& effect);
  void apply(Hosted& range, const roles::LeaveAnswer& effect);
  void apply(Hosted& range, const roles::CloseConnection& effect);
  void apply(Hosted& range, const roles::FinishConnection& effect);
  void apply(Hosted& range, const roles::RefuseConnection& effect);
  void apply(Hosted& range, const roles::Note& effect);
  void apply(Hosted& range, const roles::ForgetSharing& effect);
  void apply(Hosted& range, const roles::ReachOut& effect);
  void apply(Hosted& range, const roles::RangeEnded& effect);
  void apply(Hosted& range, const roles::LeaveRun& effect);

  Checks& checks_;
  std::vector<std::unique_ptr<Hosted>> ranges_;
  std::map<ConnectionId, Served> served_;
  net::FreezeWatch awake_{kBeginning};
  Time next_heartbeat_{};
  Time next_silent_{};  // no channel has been silent for too long before
  std::optional<net::Refusal> verdict_;
  int failure_ = 0;
  std::string sentence_;
  bool ended_ = false;
};

}  // namespace disttf::sim
