// A simulated process: it runs, may be frozen, and ends with an exit code or by a signal.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "run/outcome.h"
#include "run/task.h"
#include "tests/sim/network.h"
#include "tests/sim/routine.h"
#include "tests/sim/world.h"

namespace disttf::sim {

// The exit code that a shell reports for a process killed by signal 9.
inline constexpr int kKilled = 137;

// The incarnation of a process that begins now, on a machine whose clock is ahead by `ahead`.
// `stream` and `index` identify the process.
[[nodiscard]] std::uint64_t incarnation_of(const World& world, Duration ahead, std::uint64_t stream,
                                           std::uint64_t index);

class Process : public Actor {
 public:
  // `on_end`: called when the process has exited or was killed inside an operation.
  using OnEnd = std::function<void(Process&, int code, const std::string& sentence)>;
  Process(World& world, Network& network, roles::Task task, std::size_t node, OnEnd on_end)
      : world_(world),
        network_(network),
        task_(std::move(task)),
        node_(node),
        name_(net::to_string(task_.self)),
        title_(name_),
        on_end_(std::move(on_end)) {}

  // Sets how many microseconds of its clock pass in a second of the world's. REQUIRES: it has not
  // started.
  void set_clock(std::int64_t millionths) { clock_ = millionths; }
  // It is the n-th process of its task. REQUIRES: it has not started.
  void set_number(std::size_t number) {
    title_ = number == 1 ? name_ : name_ + " (" + std::to_string(number) + ")";
  }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  // The name for the log, which distinguishes processes of one task.
  [[nodiscard]] const std::string& title() const noexcept { return title_; }
  [[nodiscard]] std::size_t node() const noexcept { return node_; }
  [[nodiscard]] const roles::Task& task() const noexcept { return task_; }
  [[nodiscard]] bool is_alive() const noexcept { return alive_; }
  // Returns whether its port is open.
  [[nodiscard]] virtual bool listens() const noexcept { return alive_; }

  // --- what the cluster does to it
  virtual void start() = 0;
  virtual void terminate() = 0;  // SIGTERM
  void kill(bool silently);
  // Freezes it until then, by the world's clock.
  void freeze(Time until);
  // It runs again, if it is frozen.
  void thaw();
  // Releases the resources of a process that has ended.
  void lay_to_rest() { bury(); }
  [[nodiscard]] bool is_frozen() const noexcept { return frozen_; }
  // Returns the incarnation that the ps have recorded, or the last one.
  [[nodiscard]] virtual std::uint64_t incarnation() const noexcept { return task_.incarnation; }
  // A newer process of its task has begun, which this one may not have noticed.
  void replaced() noexcept { is_replaced_ = true; }
  [[nodiscard]] bool is_replaced() const noexcept { return is_replaced_; }
  // Returns the keyring, after reading the machine's secret file again if it has changed.
  [[nodiscard]] net::Keyring& keyring(SecretFiles& files);
  // Postpones an event that arrived while the process was frozen.
  void defer(Actor& actor, std::uint32_t what, std::uint64_t a, std::uint64_t b) {
    deferred_.push_back({&actor, what, a, b});
  }

  // --- events of the network
  virtual void accept(ConnectionId id, const net::Hello& hello);
  // Delivers a whole frame to the dialer. The listener gets the header here, and the body, which
  // may be incomplete, in on_body().
  virtual void on_header(ConnectionId id, const Frame& frame) = 0;
  virtual void on_body(ConnectionId id, const Frame& frame, std::size_t bytes);
  virtual void on_closed(ConnectionId id) = 0;

  void on_event(std::uint32_t what, std::uint64_t a, std::uint64_t b) final;

 protected:
  static constexpr std::uint32_t kContinue = 0;  // derived classes use higher events
  virtual void happen(std::uint32_t what, std::uint64_t a, std::uint64_t b) = 0;
  // Releases what it holds. Not called from its own code.
  virtual void bury() = 0;

  // Returns the time by its own clock.
  [[nodiscard]] Time now() const noexcept;
  // Schedules an event of this process at that time of its clock.
  void schedule(Time at, std::uint32_t what, std::uint64_t a = 0, std::uint64_t b = 0);
  void exit(int code, const std::string& sentence);
  // It is killed inside an operation. `silently`: together with its machine.
  void perish(bool silently);
  void note(const std::string& line) const {
    if (world_.logs()) {
      world_.log(title_ + ": " + line);
    }
  }

  World& world_;
  Network& network_;
  const roles::Task task_;

 private:
  struct Deferred {
    Actor* actor;
    std::uint32_t what;
    std::uint64_t a;
    std::uint64_t b;
  };

  const std::size_t node_;
  const std::string name_;
  std::string title_;
  const OnEnd on_end_;
  std::int64_t clock_ = 1'000'000;
  bool alive_ = true;
  bool frozen_ = false;
  bool is_replaced_ = false;
  Time frozen_until_{};
  std::vector<Deferred> deferred_;
  std::optional<net::Keyring> keyring_;
  std::size_t secrets_read_ = 0;  // the number of changes that it has read
};

// A process whose fibers each work in sequence, as threads do.
class FiberProcess : public Process {
 public:
  using Process::Process;

  struct Fiber {
    std::size_t index = 0;
    Routine<void> root;
    std::coroutine_handle<> waiting = {};
    Time until{};          // when the wait ends
    Time armed{};          // when its event is scheduled
    bool is_deaf = false;  // it waits for the time only
  };
  // This process's end of a connection that it has dialed.
  struct Channel {
    ConnectionId id = 0;
    Fiber* reader = nullptr;
    bool is_open = false;
    std::vector<Frame> inbox;
    std::size_t next = 0;

    [[nodiscard]] bool has_frame() const noexcept { return next < inbox.size(); }
  };

  void on_header(ConnectionId id, const Frame& frame) override;
  void on_closed(ConnectionId id) override;

 protected:
  // Awaits the next frame or event, or that time.
  struct Wait {
    FiberProcess& process;
    Fiber& fiber;
    Time until;
    bool is_deaf = false;
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> waiting) const;
    void await_resume() const noexcept {}
  };
  [[nodiscard]] Wait wait(Fiber& fiber, Time until) { return {*this, fiber, until}; }
  [[nodiscard]] Wait sleep(Fiber& fiber, Duration duration) {
    return {*this, fiber, now() + duration, true};
  }
  Fiber& spawn(std::function<Routine<void>(Fiber&)> make);
  void wake(Fiber& fiber);

  void open(Channel& channel, Fiber& reader, std::size_t node, const net::Hello& hello);
  void close(Channel& channel);
  [[nodiscard]] Frame take(Channel& channel);

  void happen(std::uint32_t what, std::uint64_t a, std::uint64_t b) override;
  void bury() override;

 private:
  static constexpr std::uint32_t kTimer = 1;
  void resume(Fiber& fiber);
  // Returns nullptr if the connection belongs to no channel, or no longer does.
  [[nodiscard]] Channel* channel_of(ConnectionId id) const noexcept;
  void forget(ConnectionId id) noexcept;

  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<std::function<Routine<void>(Fiber&)>> makers_;  // hold the coroutines' captures
  // Open channels. Their ids lie in one array, since every frame is looked up in it.
  std::vector<std::pair<ConnectionId, Channel*>> channels_;
};

}  // namespace disttf::sim
