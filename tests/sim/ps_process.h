// A simulated ps: the real core, with what its shell does but without sockets, and the state that
// the checkers compare.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "net/waiting/interrupt.h"
#include "roles/ps/core/connection_map.h"
#include "roles/ps/core/ps_core.h"
#include "tests/sim/checks.h"
#include "tests/sim/process.h"
#include "tests/sim/state_channels.h"

namespace disttf::sim {

class PsProcess final : public Process {
 public:
  // `disk`: nullptr if there is no --train_dir.
  PsProcess(World& world, Network& network, Checks& checks, SimulatedDisk* disk, roles::Task task,
            std::size_t node, OnEnd on_end);

  [[nodiscard]] bool listens() const noexcept override { return is_alive() && is_open_; }
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
  enum Event : std::uint32_t {
    kWatch = 10,
    kClosedHere,   // of a connection that this ps has closed itself
    kReach,        // of a range: time to dial the other host
    kDialTimeout,  // of a range, and of which connection
    kDrained,
    kShardWritten,  // to the --train_dir
  };
  // One of the core's ranges.
  struct Hosted {
    // The connection that it has dialed to the other host.
    ConnectionId dialled = 0;
    std::uint64_t attempts = 0;
    // As last observed.
    net::ReplicaRole replica_role = net::ReplicaRole::kOnly;
    std::uint64_t replica_roles = 0;  // changes of `replica_role`
    std::uint64_t step = 0;
    net::Generation generation = 0;
    bool held = false;
    net::ViewNumber view = {};
    // Its state contains a torn gradient. So the trainer, this process, and every process that
    // receives the state must have been replaced.
    bool is_torn = false;
    bool is_behind = false;  // as last observed: a copy that has deferred updates
    // Where the next update is written, and how many there have been.
    std::vector<float> place;
    std::uint64_t updates = 0;
  };
  struct Served {
    net::Hello hello;
    roles::BodyPlan plan;
    net::FrameHeader push;  // the newest PUSH_PULL
    Time heard{};
  };

  void do_effects();
  void look(std::size_t replica);
  std::span<float> place_of_update(std::size_t replica);  // see roles::Arena
  void greeted(ConnectionId id, const Frame& frame);
  void end_connection(ConnectionId id);
  void hear(ConnectionId id, const Frame& frame);
  void read(ConnectionId id, Served& served, const Frame& frame, std::size_t bytes);
  // Returns whether the connection is from the primary of a range that this ps backs up.
  [[nodiscard]] bool is_primarys(ConnectionId id);
  // Leaves the update in memory, or announces it on the connection. Returns whether the backup has
  // it.
  bool leave(ConnectionId to, Frame& update);
  // Takes the updates that the primary has left, after which it leaves no more.
  void take_rest(ConnectionId primary);
  void check_not_replaced(const roles::RangeReplica& range, const net::Hello& from,
                          net::Generation generation);
  void check_none_waits(const roles::RangeReplica& range);
  void check_answer(const net::FrameHeader& answer, ConnectionId to);
  void check_staleness(const roles::RangeReplica& range, const net::FrameHeader& answer,
                       const net::FrameHeader& push);
  void watch();
  void reach(std::size_t replica);
  void forgive(Duration missed);
  void close_timed_out_channels();

  // Effects of a range.
  void apply(std::size_t replica, roles::SendFrame& effect);
  void apply(std::size_t replica, const roles::ConnectToBackup& effect);
  void apply(std::size_t replica, const roles::DrainConnections& effect);
  void apply(std::size_t /*replica*/, const roles::CloseConnection& effect) { apply(effect); }
  void apply(std::size_t replica, const roles::FinishConnection& effect);
  void apply(std::size_t /*replica*/, const roles::RefuseConnection& effect) { apply(effect); }
  void apply(std::size_t /*replica*/, const roles::Note& effect) { apply(effect); }
  // Effects of the process.
  void apply(const roles::CloseConnection& effect);
  void apply(const roles::RefuseConnection& effect);
  void apply(const roles::Note& effect);
  void apply(const roles::ClosePort& effect);
  void apply(const roles::AwaitDrained& effect);
  void apply(const roles::StayIdle& effect);
  static void apply(const roles::AnswerMetrics& /*effect*/) {}  // no process requests metrics here
  static void apply(const roles::SendTrace& /*effect*/) {}      // nor a trace
  void apply(const roles::EndProcess& effect);

  Checks& checks_;
  StateChannels state_channels_;
  std::unique_ptr<roles::PsCore> core_;  // from start() on
  std::array<Hosted, 2> hosted_;         // by replica
  roles::ConnectionMap<Served> served_;
  net::FreezeWatch awake_{kBeginning};
  Time next_timeout_{};  // no channel times out before then
  bool is_open_ = true;  // whether its port is open
};

// Returns a line for each process that is alive.
[[nodiscard]] std::string states_of(const std::vector<std::unique_ptr<Process>>& processes);

}  // namespace disttf::sim
