// What belongs to a ps as a process: the loop, the listener, signals, time, and how it ends. What
// belongs to a range of the parameter vector is roles/ps/shell/range_server.h. For the files that
// implement the two.
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
#include "roles/checkpoint/shell/shard_writer.h"
#include "roles/ps/shell/range_server.h"
#include "roles/run/outcome.h"
#include "roles/run/task.h"

namespace disttf::roles {

// For the last frames to leave when the process is about to end.
inline constexpr std::chrono::milliseconds kDrainTimeout{500};

class ParameterServer {
 public:
  ParameterServer(Task task, std::filesystem::path train_dir)
      : task_(std::move(task)), watch_timer_(context_), writer_(std::move(train_dir)) {
    ranges_.push_back(std::make_unique<RangeServer>(*this, std::uint8_t{0}));
  }

  int run();

  // For the range that is served here; on the io_context's thread.
  [[nodiscard]] const Task& task() const noexcept { return task_; }
  [[nodiscard]] asio::io_context& context() noexcept { return context_; }
  [[nodiscard]] ShardWriter& writer() noexcept { return writer_; }
  void spawn(std::function<asio::awaitable<void>()> coroutine);  // no exception gets lost
  // Connections have names, by which cores know them. nullptr: it is no more.
  [[nodiscard]] ConnectionId add(const ConnectionPtr& connection);
  [[nodiscard]] net::ServerConnection* find(ConnectionId id) const;
  void remove(ConnectionId id) { connections_.erase(id); }
  // Ends. fail() ends the run: the trainers are told why. leave() ends this process alone: for them
  // it is lost, and they wait for another one in its place.
  void leave(ExitCode code, const std::string& sentence);
  void fail(ExitCode code, const std::string& own_sentence, const std::string& peers_sentence);
  // A range's part of the run is over. `last`: connections whose last frames are to leave.
  void range_ended(const std::vector<ConnectionId>& last);

 private:
  // Connections. Each coroutine ends with its connection.
  std::variant<net::Welcome, net::Refusal> welcome(const net::Hello& hello);
  asio::awaitable<void> serve(ConnectionPtr connection);
  asio::awaitable<void> serve_control(ConnectionId id, ConnectionPtr connection);

  // The range that a HELLO means.
  [[nodiscard]] RangeServer& range_of(const net::Hello& hello);
  [[nodiscard]] std::string self_text() const { return describe(task_.cluster, task_.self); }
  [[nodiscard]] bool is_finishing() const;
  [[nodiscard]] bool is_over() const;

  // Runs the io_context until it is stopped.
  void loop();
  [[nodiscard]] bool expects_gradient() const noexcept;
  bool look();  // true: something has come, and was dealt with

  asio::awaitable<void> watch();  // the passage of time
  void on_signal(int number);
  void on_exception(const std::exception_ptr& exception);

  const Task task_;  // constant
  // The io_context's thread owns everything below.
  asio::io_context context_{1};
  asio::steady_timer watch_timer_;
  std::unique_ptr<net::Listener> listener_;
  // Its own range; and that of the ps before it, once a HELLO has meant it (--ps_replicas 2).
  std::vector<std::unique_ptr<RangeServer>> ranges_;
  net::Eagerness eagerness_;
  std::map<ConnectionId, ConnectionPtr> connections_;  // that are served
  ConnectionId last_id_ = 0;
  std::vector<ConnectionPtr> last_;  // to be drained before the process ends
  bool ended_ = false;
  bool is_told_to_stop_ = false;  // by a signal, after the run
  bool is_idle_ = false;          // stays after the run, for late trainers
  Clock::time_point next_heartbeat_ = Clock::now();
  std::optional<net::Refusal> verdict_;
  std::optional<Failure> failure_;  // what run() throws
  ShardWriter writer_;              // posts to context_
};

}  // namespace disttf::roles
