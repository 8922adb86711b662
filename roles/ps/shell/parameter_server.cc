#include "roles/ps/shell/parameter_server.h"

#include <array>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <csignal>
#include <limits>
#include <thread>
#include <utility>

#include "math/non_temporal_stores.h"
#include "net/tcp/listener.h"
#include "net/waiting/as_tuple.h"
#include "net/waiting/spin_then_park.h"
#include "roles/ps/shell/ps_process.h"
#include "run/process/log.h"
#include "run/process/machine.h"
#include "run/process/ps_channel.h"
#include "run/process/resource_limits.h"
#include "run/process/start_thread.h"
#include "run/process/stop_signal.h"
#include "run/process/task_listener.h"

namespace disttf::roles {
namespace {

// The most handlers that run between two polls of shared memory.
constexpr std::size_t kHandlersPerLook = 16;

constexpr const char* kWhatARunTakes =
    "its range of the parameters, the optimizer's state and one gradient of each trainer";

class SystemAlarm final : public Alarm {
 public:
  explicit SystemAlarm(asio::io_context& context) : timer_(context, Clock::time_point::max()) {}

  asio::awaitable<void> wait_until(Clock::time_point time) override {
    // To set the same time again would end the waits of other coroutines.
    if (timer_.expiry() != time) {
      timer_.expires_at(time);
    }
    co_await timer_.async_wait(net::kAsTuple);
  }
  void wake() override { timer_.cancel(); }

 private:
  asio::steady_timer timer_;
};

struct JoinedThread {
  explicit JoinedThread(std::thread started) : thread(std::move(started)) {}
  ~JoinedThread() { thread.join(); }
  JoinedThread(const JoinedThread&) = delete;
  JoinedThread& operator=(const JoinedThread&) = delete;
  std::thread thread;
};

// The event loop, the listener, signals, and all else that a ps takes from its system.
class SystemIo final : public PsIo, private net::Poller {
 public:
  SystemIo(Task task, std::filesystem::path train_dir)
      : PsIo(Sizes{}),
        task_(std::move(task)),
        train_dir_(std::move(train_dir)),
        server_(task_, threads_of(task_), *this) {}

  int run();

 private:
  [[nodiscard]] Clock::time_point now() const noexcept override { return Clock::now(); }
  [[nodiscard]] std::unique_ptr<Alarm> make_alarm() override {
    return std::make_unique<SystemAlarm>(context());
  }
  [[nodiscard]] std::uint64_t random() override { return random_number(); }
  asio::awaitable<ConnectionPtr> dial_host(std::size_t range, std::uint8_t replica) override;
  bool offer_updates(net::FrameConnection& backup, const UpdateShape& shape) override;
  void require_memory(std::uint64_t bytes) override {
    roles::require_memory(bytes, describe(task_.cluster, task_.self), kWhatARunTakes);
  }
  [[nodiscard]] std::shared_ptr<net::InPlaceMemory> make_parameter_memory(
      std::uint8_t /*replica*/, std::size_t floats) override {
    return roles::make_parameter_memory(task_, floats, task_.cluster.trainer_count());
  }
  // Non-temporal stores help only if another process reads the memory.
  [[nodiscard]] bool streams() const override {
    return math::non_temporal_stores_help() && tasks_here(task_).trainers > 0;
  }
  [[nodiscard]] std::shared_ptr<net::InPlaceMemory> make_snapshot_memory(
      std::size_t bytes) override {
    return roles::make_snapshot_memory(task_, bytes);
  }
  [[nodiscard]] std::shared_ptr<void> start_thread(std::function<void()> work) override {
    return std::make_shared<JoinedThread>(roles::start_thread(std::move(work)));
  }
  [[nodiscard]] std::unique_ptr<ShardFileWriter> make_writer() override {
    return std::make_unique<ShardWriter>(train_dir_);
  }
  void log(const Note& note) override { log_note(note); }
  void close_port() override {
    if (listener_) {
      listener_->stop();
    }
  }
  void stay_idle() override { log_idle(); }
  void end(const EndProcess& end) override {
    end_ = end;
    context().stop();
  }

  // Runs the io_context until it is stopped.
  void loop();
  // Handles what has arrived. Returns false if nothing has.
  bool proceed();
  // Waits until something arrives.
  void sleep();
  [[nodiscard]] bool is_ready() noexcept override { return server_.poll(); }
  void set_parked(bool parked) noexcept override { server_.set_parked(parked); }

  const Task task_;
  const std::filesystem::path train_dir_;
  std::array<net::NameLookup, 2> lookups_;  // of the other hosts, by `replica`
  ParameterServer server_;
  std::unique_ptr<net::Listener> listener_;
  net::SpinThenPark for_gradients_;
  net::SpinThenPark for_acks_;
  net::SpinThenPark for_anything_;
  EndProcess end_;  // the result of run()
};

asio::awaitable<ConnectionPtr> SystemIo::dial_host(std::size_t range, std::uint8_t replica) {
  net::ConnectionLimits limits;
  // BackupSender::is_safe() bounds the queue.
  limits.max_queued_bytes = std::numeric_limits<std::size_t>::max() / 2;
  net::Dialed dialed =
      co_await roles::dial_host(context(), task_, range, replica, net::ChannelPurpose::kReplica,
                                lookups_.at(replica), limits);
  co_return std::move(dialed.connection);
}

bool SystemIo::offer_updates(net::FrameConnection& backup, const UpdateShape& shape) {
  std::unique_ptr<net::BodyRing> slots = make_update_slots(task_, shape);
  if (!slots) {
    return false;
  }
  static_cast<net::ServerConnection&>(backup).offer(std::move(slots));  // made by dial_host()
  return true;
}

int SystemIo::run() {
  const StopSignal stop([this](int number) {
    // Posted to the ps's thread: StopSignal calls this on a thread of its own.
    asio::post(context(), [this, number] {
      server_.stop(static_cast<ExitCode>(exit_code_for(number)), signal_name(number));
    });
  });
  net::ListenerHooks hooks;
  hooks.make_welcome = [this](const net::Hello& hello) { return server_.welcome(hello); };
  hooks.on_connection = [this](std::shared_ptr<net::ServerConnection> connection) {
    return server_.serve(std::move(connection));
  };
  hooks.on_error = [this](const std::exception_ptr& exception) { server_.on_exception(exception); };
  // Opened last: from here on a peer may connect, and every hook must be set by then.
  listener_ = open_task_listener(context(), task_, std::move(hooks), stop);
  server_.start();
  loop();
  // Once more, so that the counters include the end of the run.
  server_.publish_meters();
  if (end_.code != kDone) {
    throw Failure(end_.code, end_.sentence);
  }
  return kDone;
}

// When all gradients of a step but one have arrived, the last one is about to. Busy-polling for it
// saves the step a wake-up. It also keeps the kernel from waking this process on the pushing
// trainer's processor, where that trainer could load its next batch. When a step has been made and
// the other host of the range does not have it yet, all trainers wait, and processors are free.
// (With more tasks than processors polling may take a processor from a trainer that computes; it
// yields, and net::SpinThenPark notices when that takes long.)
void SystemIo::loop() {
  const auto proceeds = [this] { return proceed(); };
  set_parked(false);
  while (!context().stopped()) {
    // Snapshots are copied only when no frame waits, and before the ps spins or sleeps.
    const bool has_come = proceed() || server_.copy_snapshots() ||
                          (server_.core().expects_gradient() && for_gradients_.spin(proceeds)) ||
                          (server_.core().expects_ack() && for_acks_.spin(proceeds));
    if (!has_come) {
      sleep();
    }
  }
}

bool SystemIo::proceed() {
  // Memory first: a push there is what trainers wait for.
  static_cast<void>(is_ready());
  std::size_t handlers = 0;
  // Bounded, so that a stream of small frames cannot starve requests in memory.
  while (handlers < kHandlersPerLook && context().poll_one() > 0) {
    ++handlers;
  }
  return handlers > 0 || context().stopped();
}

// Before it sleeps it yields once. Trainers that share its processor and are about to push then
// find it awake, which saves frames and wake-ups. It helps even with more tasks than processors.
// Trainers send a frame to a ps that sleeps.
void SystemIo::sleep() {
  if (!for_anything_.yield_once([this] { return proceed(); })) {
    net::SpinThenPark::park(*this, [this] { context().run_one(); });
  }
}

}  // namespace

int run_parameter_server(const Task& task, const std::filesystem::path& train_dir) {
  return SystemIo(task, train_dir).run();
}

}  // namespace disttf::roles
