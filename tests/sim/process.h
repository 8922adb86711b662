// A simulated process: it lives, may be frozen, and ends with a code or without one.
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

#include "roles/run/outcome.h"
#include "roles/run/task.h"
#include "tests/sim/network.h"
#include "tests/sim/routine.h"
#include "tests/sim/world.h"

namespace disttf::sim {

// What a shell says of a process that signal 9 has ended.
inline constexpr int kKilled = 137;

// Of a process that begins now, on a machine whose clock is ahead by so much. `stream`, `index`:
// which process.
[[nodiscard]] std::uint64_t incarnation_of(const World& world, Duration ahead, std::uint64_t stream,
                                           std::uint64_t index);

class Process : public Actor {
 public:
  // `on_end`: it has ended by itself, or perished.
  using OnEnd = std::function<void(Process&, int code, const std::string& sentence)>;
  Process(World& world, Network& network, roles::Task task, std::size_t node, OnEnd on_end)
      : world_(world),
        network_(network),
        task_(std::move(task)),
        node_(node),
        name_(net::to_string(task_.self)),
        title_(name_),
        on_end_(std::move(on_end)) {}

  // Its clock runs so many millionths as fast as the world's. Before it starts.
  void set_clock(std::int64_t millionths) { clock_ = millionths; }
  // It is the n-th process of its task. Before it starts.
  void set_number(std::size_t number) {
    title_ = number == 1 ? name_ : name_ + " (" + std::to_string(number) + ")";
  }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  // In the log: which process of that name.
  [[nodiscard]] const std::string& title() const noexcept { return title_; }
  [[nodiscard]] std::size_t node() const noexcept { return node_; }
  [[nodiscard]] const roles::Task& task() const noexcept { return task_; }
  [[nodiscard]] bool is_alive() const noexcept { return alive_; }
  // It accepts connections: its port is open.
  [[nodiscard]] virtual bool listens() const noexcept { return alive_; }

  // --- what is done to it
  virtual void start() = 0;
  virtual void terminate() = 0;  // SIGTERM
  void kill(bool silently);
  // Until then by the world's clock.
  void freeze(Time until);
  // It has ended: what it held goes now.
  void lay_to_rest() { bury(); }
  [[nodiscard]] bool is_frozen() const noexcept { return frozen_; }
  // That the ps know, or the last one.
  [[nodiscard]] virtual std::uint64_t incarnation() const noexcept { return task_.incarnation; }
  // Another process of its task has begun, though it may not know.
  void replaced() noexcept { is_replaced_ = true; }
  [[nodiscard]] bool is_replaced() const noexcept { return is_replaced_; }
  // What it knows of its machine's file, which it reads again where that has changed.
  [[nodiscard]] net::Keyring& keyring(SecretFiles& files);
  // An event that it would have seen, had it run.
  void defer(Actor& actor, std::uint32_t what, std::uint64_t a, std::uint64_t b) {
    deferred_.push_back({&actor, what, a, b});
  }

  // --- what the network says
  virtual void accept(ConnectionId id, const net::Hello& hello);
  // For whoever has dialled the whole frame; else the header, and then the body, perhaps not whole.
  virtual void on_header(ConnectionId id, const Frame& frame) = 0;
  virtual void on_body(ConnectionId id, const Frame& frame, std::size_t bytes);
  virtual void on_closed(ConnectionId id) = 0;

  void on_event(std::uint32_t what, std::uint64_t a, std::uint64_t b) final;

 protected:
  static constexpr std::uint32_t kContinue = 0;  // events of derived classes are above
  virtual void happen(std::uint32_t what, std::uint64_t a, std::uint64_t b) = 0;
  // What it held is gone; called outside of its own code.
  virtual void bury() = 0;

  // By its own clock.
  [[nodiscard]] Time now() const noexcept;
  // An event of its own, then.
  void schedule(Time at, std::uint32_t what, std::uint64_t a = 0, std::uint64_t b = 0);
  void exit(int code, const std::string& sentence);
  // It is killed in the middle of what it does. `silently`: with its machine.
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
  std::size_t secrets_read_ = 0;  // after so many changes
};

// One that does things in sequence: each fiber is a thread, as it were.
class FiberProcess : public Process {
 public:
  using Process::Process;

  struct Fiber {
    std::size_t index = 0;
    Routine<void> root;
    std::coroutine_handle<> waiting = {};
    Time until{};          // of the wait
    Time armed{};          // an event comes then
    bool is_deaf = false;  // it waits for the time alone
  };
  // Its end of a connection that it has dialled.
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
  // What co_await does: until something comes, or the time has.
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
  // nullptr: it is none of them, or not any more.
  [[nodiscard]] Channel* channel_of(ConnectionId id) const noexcept;
  void forget(ConnectionId id) noexcept;

  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<std::function<Routine<void>(Fiber&)>> makers_;  // hold what the coroutines capture
  // Those that are open; their ids in one piece, as each frame is for one of them.
  std::vector<std::pair<ConnectionId, Channel*>> channels_;
};

}  // namespace disttf::sim
