// A simulated ps: the real shell and core (roles/ps/) over simulated connections, memory, time and
// files; and the state that the checkers compare.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "roles/ps/shell/ps_process.h"
#include "tests/sim/checks.h"
#include "tests/sim/process.h"
#include "tests/sim/ps_connection.h"
#include "tests/sim/ps_io.h"

namespace disttf::sim {

class PsProcess final : public Process {
 public:
  // `disk`: nullptr if there is no --train_dir.
  PsProcess(World& world, Network& network, Checks& checks, SimulatedDisk* disk, roles::Task task,
            std::size_t node, OnEnd on_end);
  ~PsProcess() override;
  PsProcess(const PsProcess&) = delete;
  PsProcess& operator=(const PsProcess&) = delete;

  [[nodiscard]] bool listens() const noexcept override { return is_alive() && is_open_; }
  void start() override;
  void terminate() override;
  void accept(ConnectionId id, const net::Hello& hello) override;
  void on_header(ConnectionId id, const Frame& frame) override;
  void on_body(ConnectionId id, const Frame& frame, std::size_t bytes) override;
  void on_closed(ConnectionId id) override;
  // "range 0: primary, step 12, generation 1"
  [[nodiscard]] std::string describe_state() const;

  // --- for its connections, and for the rest of what its shell uses

  using Process::now;
  [[nodiscard]] World& world() noexcept { return world_; }
  [[nodiscard]] Network& network() noexcept { return network_; }
  [[nodiscard]] SimulatedPsIo& io() noexcept { return *io_; }
  void mark(Mark what) noexcept { world_.mark(what); }
  void violate(const std::string& what) { world_.violate(name() + " " + what); }
  void log(const roles::Note& line);
  void close_port() noexcept { is_open_ = false; }
  void end(const roles::EndProcess& end);
  std::shared_ptr<PsConnection> connect(ConnectionId id, const net::Hello& hello,
                                        std::size_t range);
  void forget(ConnectionId id) { connections_.erase(id); }
  void watch_timeouts(Time next);
  void schedule_alarm(Time at, std::uint64_t alarm, std::uint64_t wait) {
    schedule(at, kAlarm, alarm, wait);
  }
  void schedule_thread(Time at, std::uint64_t thread) { schedule(at, kThread, thread); }
  void schedule_writer(Time at, std::uint64_t writer) { schedule(at, kWritten, writer); }
  // Whether the chief and it share memory for snapshots.
  [[nodiscard]] bool shares_snapshots() const;
  // Whether there is no place in memory for that update of a connection.
  [[nodiscard]] bool lacks_place(ConnectionId id, std::uint64_t update) const;

  // --- checks

  // The shell may have called the core: reports what has changed there.
  void observe();
  void header_was_read(const PsConnection& from, const net::FrameHeader& header);
  // Checks a frame that is about to be sent. False: it must not be.
  [[nodiscard]] bool may_send(const PsConnection& to, const net::FrameHeader& header);
  // A peer is to use that memory of the range.
  void check_memory(std::size_t range, const net::InPlaceMemory& memory);
  // The range's state contains a torn gradient, or receives one. So the trainer, this process, and
  // every process that receives the state must have been replaced.
  [[nodiscard]] bool is_torn(std::size_t range) const { return hosted_[range].is_torn; }
  void is_torn(std::size_t range, bool is) { hosted_[range].is_torn = is_torn(range) || is; }
  [[nodiscard]] bool is_elastic(std::size_t range) const;

 protected:
  void happen(std::uint32_t what, std::uint64_t a, std::uint64_t b) override;
  void bury() override;

 private:
  enum Event : std::uint32_t { kAlarm = 10, kThread, kWritten, kTimeouts, kPoll };
  // One of the core's ranges, as last observed.
  struct Hosted {
    net::ReplicaRole replica_role = net::ReplicaRole::kOnly;
    std::uint64_t replica_roles = 0;  // changes of `replica_role`
    std::uint64_t step = 0;
    net::Generation generation = 0;
    bool held = false;
    net::ViewNumber view = {};
    bool is_torn = false;
    bool is_behind = false;  // a copy that has deferred updates
  };

  [[nodiscard]] PsConnection* find(ConnectionId id) const;
  [[nodiscard]] const roles::PsCore& core() const { return std::as_const(*server_).core(); }
  // Answers a HELLO, and serves the connection.
  asio::awaitable<void> answer(ConnectionId id, net::Hello hello);
  // Runs the shell until it waits, and lets it park.
  void run();
  void proceed();
  void park();
  void time_out();
  void observe(std::size_t replica);
  void check_effects();
  void check_not_replaced(const net::Hello& from, net::Generation generation);
  void check_none_waits(const roles::RangeReplica& range);
  void check_answer(const net::FrameHeader& answer, const net::FrameHeader& push);
  void check_staleness(const roles::RangeReplica& range, const net::FrameHeader& answer,
                       const net::FrameHeader& push);

  Checks& checks_;
  SimulatedDisk* const disk_;
  // From start() on.
  std::unique_ptr<SimulatedPsIo> io_;
  std::unique_ptr<roles::ParameterServer> server_;
  std::map<ConnectionId, PsConnection*> connections_;
  std::array<Hosted, 2> hosted_;  // by replica
  // The last frame on a control channel in this event.
  std::optional<std::pair<net::Hello, net::Generation>> control_;
  Time next_timeouts_ = Time::max();
  std::uint64_t polls_ = 0;
  bool is_awake_ = false;  // it polls memory, and is not notified
  bool is_open_ = true;    // whether its port is open
};

// Returns a line for each process that is alive.
[[nodiscard]] std::string states_of(const std::vector<std::unique_ptr<Process>>& processes);

}  // namespace disttf::sim
