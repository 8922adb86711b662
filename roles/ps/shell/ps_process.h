// A ps as a process, the shell of roles/ps/core/ps_core.h: the event loop, the listener, signals,
// timers, and the ids of connections. The shell of one range is roles/ps/shell/range_server.h.
// Private to the files that implement the two.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "net/tcp/listener.h"
#include "net/waiting/interrupt.h"
#include "net/waiting/spin_then_park.h"
#include "roles/ps/core/ps_core.h"
#include "roles/ps/shell/range_server.h"
#include "run/process/log.h"
#include "run/process/note_limit.h"
#include "run/task.h"

namespace disttf::roles {

class ParameterServer final : private net::Poller {
 public:
  ParameterServer(Task task, std::filesystem::path train_dir);

  int run();

  // For the ranges served here; on the io_context's thread.
  [[nodiscard]] PsCore& core() noexcept { return core_; }
  [[nodiscard]] const Task& task() const noexcept { return task_; }
  [[nodiscard]] asio::io_context& context() noexcept { return context_; }
  // The chief's checkpoint directory; empty if there is none.
  [[nodiscard]] const std::filesystem::path& train_dir() const noexcept { return train_dir_; }
  void spawn(std::function<asio::awaitable<void>()> coroutine);  // exceptions reach on_exception()
  // The ids by which cores name connections. find() returns nullptr if the connection has gone.
  [[nodiscard]] ConnectionId add(const ConnectionPtr& connection);
  [[nodiscard]] net::ServerConnection* find(ConnectionId id) const;
  void remove(ConnectionId id) { connections_.erase(id); }
  // To be called when a frame's header or body has been handed to the core: if that completed a
  // step whose time is measured, the step ends now.
  void send_clock() {
    if (core_.awaits_clock()) {
      core_.clock(Clock::now());
    }
  }
  // Carries out the core's effects; to be called after each call of the core.
  void do_effects();
  void apply(const CloseConnection& effect);
  void apply(RefuseConnection& effect);
  // Logs notes about trainers and other ps, rate-limited.
  void apply(const Note& effect) {
    if (std::optional<std::string> text = notes_.admit(effect.text, Clock::now())) {
      log_note({.level = effect.level, .text = *std::move(text)});
    }
  }
  void drain_at_end(const std::vector<ConnectionId>& ids);

 private:
  // Serves a connection; returns when it has closed.
  asio::awaitable<void> serve(ConnectionPtr connection);
  // Returns the server of the core's range `replica`. REQUIRES: the core has one.
  [[nodiscard]] RangeServer& range(std::size_t replica);

  // Runs the io_context until it is stopped.
  void loop();
  // Handles what has arrived. Returns false if nothing has.
  bool proceed();
  // Copies a piece of a snapshot shard: small, so that arriving frames are handled first. Returns
  // false if there is nothing to copy.
  bool copy_snapshots();
  // Waits until something arrives.
  void sleep();
  // Polls what trainers and other hosts have left in memory, for all ranges; see
  // net::ParameterMemory.
  [[nodiscard]] bool is_ready() noexcept override;
  void set_parked(bool parked) noexcept override;

  asio::awaitable<void> watch();  // the passage of time
  void publish_meters();
  void on_exception(const std::exception_ptr& exception);

  void apply(const ClosePort& effect);
  void apply(const AwaitDrained& effect);
  static void apply(const StayIdle& effect);
  void apply(const AnswerMetrics& effect);
  void apply(const SendTrace& effect);
  void apply(EndProcess& effect);

  const Task task_;  // constant
  const std::filesystem::path train_dir_;
  // The io_context's thread owns everything below.
  asio::io_context context_{1};
  PsCore core_;
  asio::steady_timer watch_timer_;
  std::unique_ptr<net::Listener> listener_;
  std::vector<std::unique_ptr<RangeServer>> ranges_;  // by the core's range number
  net::SpinThenPark for_gradients_;
  net::SpinThenPark for_acks_;
  net::SpinThenPark for_anything_;
  std::map<ConnectionId, ConnectionPtr> connections_;  // the connections being served
  ConnectionId last_id_ = 0;
  NoteLimit notes_;
  std::vector<ConnectionPtr> last_;  // to be drained before the process ends
  EndProcess end_;                   // the result of run()
};

}  // namespace disttf::roles
