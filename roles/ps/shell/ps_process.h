// A ps as a process, the shell of roles/ps/core/ps_core.h: the loop, the listener, signals, time,
// and which connection has which name. What belongs to a range of the parameter vector is
// roles/ps/shell/range_server.h. For the files that implement the two.
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

#include "net/transport/interrupt.h"
#include "net/transport/server.h"
#include "roles/process/log.h"
#include "roles/process/note_limit.h"
#include "roles/ps/core/ps_core.h"
#include "roles/ps/shell/giving_way.h"
#include "roles/ps/shell/range_server.h"
#include "roles/run/task.h"

namespace disttf::roles {

class ParameterServer {
 public:
  ParameterServer(Task task, std::filesystem::path train_dir);

  int run();

  // For the ranges that are served here; on the io_context's thread.
  [[nodiscard]] PsCore& core() noexcept { return core_; }
  [[nodiscard]] const Task& task() const noexcept { return task_; }
  [[nodiscard]] asio::io_context& context() noexcept { return context_; }
  // Of the chief's checkpoints; empty: there is none.
  [[nodiscard]] const std::filesystem::path& train_dir() const noexcept { return train_dir_; }
  void spawn(std::function<asio::awaitable<void>()> coroutine);  // no exception gets lost
  // Connections have names, by which cores know them. nullptr: it is no more.
  [[nodiscard]] ConnectionId add(const ConnectionPtr& connection);
  [[nodiscard]] net::ServerConnection* find(ConnectionId id) const;
  void remove(ConnectionId id) { connections_.erase(id); }
  // To be called when a frame's header or body has been handed to the core: where that has made a
  // step whose time is measured, it is now.
  void tell_clock() {
    if (core_.awaits_clock()) {
      core_.clock(Clock::now());
    }
  }
  // Does what the core wants done; after each call of it.
  void do_effects();
  void apply(const CloseConnection& effect);
  void apply(RefuseConnection& effect);
  // Logs what trainers and other ps have caused, unless there is too much of it.
  void apply(const Note& effect) {
    if (std::optional<std::string> text = notes_.admit(effect.text, Clock::now())) {
      log_note({.level = effect.level, .text = *std::move(text)});
    }
  }
  void drain_at_end(const std::vector<ConnectionId>& ids);

 private:
  // Ends with the connection.
  asio::awaitable<void> serve(ConnectionPtr connection);
  // The core's of this number. REQUIRES: it has one.
  [[nodiscard]] RangeServer& range(std::size_t replica);

  // Runs the io_context until it is stopped.
  void loop();
  // Deals with what has come. False: nothing has.
  bool proceed();
  // The same again and again for a moment.
  bool look(net::Eagerness& eagerness);
  // A piece of what can wait: not long, so that what comes is dealt with first. False: there is
  // nothing.
  bool copy_cuts();
  // Until something comes.
  void sleep();
  // What trainers, and other hosts of the ranges, have left in memory; as net::ParameterMemory's,
  // of all ranges.
  bool look_into_memory();
  void set_asleep(bool asleep);

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
  std::vector<std::unique_ptr<RangeServer>> ranges_;  // as the core has them
  net::Eagerness for_gradients_;
  net::Eagerness for_acks_;
  GivingWay giving_way_;                               // before it sleeps
  std::map<ConnectionId, ConnectionPtr> connections_;  // that are served
  ConnectionId last_id_ = 0;
  NoteLimit notes_;
  std::vector<ConnectionPtr> last_;  // to be drained before the process ends
  EndProcess end_;                   // what run() returns, or throws
};

}  // namespace disttf::roles
