// The ps's state and its parts, for the files that implement them:
//   parameter_server.cc           its life: connections come and go, time passes, it ends
//   parameter_server_requests.cc  what a trainer may ask for, one handler a frame kind
//   parameter_server_cuts.cc      what the chief may ask for beside the steps: cuts
// Included by these only.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "net/server.h"
#include "roles/outcome.h"
#include "roles/shard.h"
#include "roles/shard_writer.h"
#include "roles/task.h"
#include "roles/trainer_table.h"

namespace disttf::roles {

// For the last frames to leave when the process is about to end.
inline constexpr std::chrono::milliseconds kDrainTimeout{500};

class ParameterServer {
 public:
  ParameterServer(const Task& task, const std::filesystem::path& train_dir)
      : task_(task), trainers_(task, Clock::now()), watch_timer_(context_), writer_(train_dir) {}

  int run();

 private:
  enum class Phase : std::uint8_t { kWaitingForChief, kTraining, kFinishing, kEnded };

  // Connections. Each coroutine ends with its connection.
  std::variant<net::Welcome, net::Refusal> welcome(const net::Hello& hello);
  asio::awaitable<void> serve(Connection connection);
  asio::awaitable<void> serve_step(Connection connection, std::size_t rank);
  asio::awaitable<void> serve_control(Connection connection, std::size_t rank);
  asio::awaitable<void> serve_state(Connection connection);

  // One request each; false: the connection was refused or broke.
  asio::awaitable<bool> handle(const Connection& connection, std::size_t rank,
                               const net::FrameHeader& header);
  asio::awaitable<bool> handle_publish(const Connection& connection, std::size_t rank,
                                       const net::FrameHeader& header);
  asio::awaitable<bool> handle_restore(const Connection& connection, std::size_t rank,
                                       const net::FrameHeader& header);
  asio::awaitable<bool> handle_push(const Connection& connection, std::size_t rank,
                                    const net::FrameHeader& header);
  asio::awaitable<bool> handle_write_cut(const Connection& connection,
                                         const net::FrameHeader& header);
  [[nodiscard]] std::shared_ptr<const Cut> kept_cut(const net::FrameHeader& header) const;
  void make_shard(const RunConfig& config, const Connection& chief);
  // The gradient of a push, received and committed, or thrown away. `stands` stays false when the
  // state that it is about is no more.
  asio::awaitable<bool> take_gradient(const Connection& connection, std::size_t rank,
                                      const net::FrameHeader& header, bool& stands);
  bool handle_bodiless(const Connection& connection, std::size_t rank,
                       const net::FrameHeader& header);
  void handle_shutdown(const Connection& connection, const net::FrameHeader& header);
  void finish_if_alone();

  // The request is about a state that is no more: its sender is to pull again.
  void fence(const Connection& connection, const net::FrameHeader& header);
  void wait_for_answer(std::size_t rank, const Connection& connection,
                       const net::FrameHeader& header);
  void answer_waiting();
  [[nodiscard]] bool is_answerable(std::size_t rank, const net::FrameHeader& header) const;
  // Elastic: who takes which micro-batches of the next step, and who of those still missing.
  void deal_step();
  void deal_missing();
  [[nodiscard]] std::uint64_t share_of(std::size_t rank) const;
  [[nodiscard]] bool enough_present() const;
  void send_config(const WaitingRequest& request);
  void send_parameters(std::size_t rank, const WaitingRequest& request);
  [[nodiscard]] std::optional<std::string> fault_in(const net::FrameHeader& header) const;
  [[nodiscard]] std::string status() const;
  bool refuse(const Connection& connection, const net::FrameHeader& header, ExitCode code,
              const std::string& sentence);

  // The passage of time.
  asio::awaitable<void> watch();
  void check_absences(Clock::time_point now);
  void send_heartbeats();

  // Ends. fail() ends the run: the trainers are told why. leave() ends this process alone: for them
  // it is lost, and they wait for another one in its place.
  void leave(ExitCode code, const std::string& sentence);
  void fail(ExitCode code, const std::string& own_sentence, const std::string& peers_sentence);
  void on_exception(std::exception_ptr exception);
  void spawn(std::function<asio::awaitable<void>()> coroutine);  // no exception gets lost
  [[nodiscard]] std::string self_text() const { return describe(task_.cluster, task_.self); }

  const Task task_;  // constant
  // The io_context's thread owns everything below.
  asio::io_context context_{1};
  TrainerTable trainers_;
  asio::steady_timer watch_timer_;
  std::unique_ptr<net::Listener> listener_;
  // Shared with the coroutines that receive into it.
  std::shared_ptr<Shard> shard_;
  std::string config_json_;
  std::vector<std::size_t> dealt_to_;  // elastic: ranks that share the step that is being made
  std::uint32_t generation_ = 0;
  Phase phase_ = Phase::kWaitingForChief;
  std::optional<WaitingRequest> shutdown_;  // the chief's, until everybody has left
  Clock::time_point goodbye_deadline_{};
  Clock::time_point next_heartbeat_ = Clock::now();
  std::optional<net::Refusal> verdict_;  // what peers are told once the run has failed
  std::optional<Failure> failure_;       // what run() throws
  ShardWriter writer_;                   // posts to context_
};

}  // namespace disttf::roles
