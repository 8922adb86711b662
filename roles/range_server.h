// A range of the parameter vector as it is served by a ps: what trainers may say to it, who of them
// is there, and what they are answered. What happens to gradients is roles/shard.h.
//   range_server.cc           its life: trainers come and go, time passes
//   range_server_requests.cc  what a trainer may ask for, one handler a frame kind
//   range_server_cuts.cc      what the chief may ask for beside the steps: cuts
//
// Everything runs on the ps's one thread. The process that it belongs to is roles/ps_process.h.
#pragma once

#include <asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "net/server.h"
#include "roles/outcome.h"
#include "roles/shard.h"
#include "roles/task.h"
#include "roles/trainer_table.h"

namespace disttf::roles {

class ParameterServer;

class RangeServer {
 public:
  // `process` must outlive it.
  explicit RangeServer(ParameterServer& process);

  // The answer to a HELLO that fits the cluster.
  [[nodiscard]] std::variant<net::Welcome, net::Refusal> welcome(const net::Hello& hello) const;
  // A step or state channel; ends with it.
  asio::awaitable<void> serve(Connection connection);
  // A control channel has come, beats with a trainer's generation, and has gone.
  void attach_control(const Connection& connection);
  void hear(const Connection& connection, std::uint32_t generation);
  void detach_control(const Connection& connection);

  // The passage of time.
  void close_silent(Clock::time_point now) { trainers_.close_silent(now); }
  void send_heartbeats();
  void end_steps();
  void finish_if_alone();
  // Whose absence ends the run, if anybody's: the sentence.
  [[nodiscard]] std::optional<std::string> overdue(Clock::time_point now) const;

  // The run has failed: whoever is connected is told.
  void refuse_all(const net::Refusal& verdict);
  // The chief has said that the run is over.
  [[nodiscard]] bool is_finishing() const noexcept {
    return phase_ == Phase::kFinishing || phase_ == Phase::kEnded;
  }

 private:
  enum class Phase : std::uint8_t { kWaitingForChief, kTraining, kFinishing, kEnded };

  asio::awaitable<void> serve_step(Connection connection, std::size_t rank);
  asio::awaitable<void> serve_state(Connection connection);
  // A step channel has ended.
  void detach(const Connection& connection, std::size_t rank);

  // One request each; false: the connection was refused or broke.
  asio::awaitable<bool> handle(const Connection& connection, std::size_t rank,
                               const net::FrameHeader& header);
  asio::awaitable<bool> handle_publish(const Connection& connection, std::size_t rank,
                                       const net::FrameHeader& header);
  asio::awaitable<bool> handle_restore(const Connection& connection, std::size_t rank,
                                       const net::FrameHeader& header);
  asio::awaitable<bool> handle_share(const Connection& connection, std::size_t rank,
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

  [[nodiscard]] std::size_t rank_of(const Connection& connection) const {
    return task_.cluster.rank_of(connection->hello().from);
  }

  ParameterServer& process_;
  const Task& task_;  // the process's
  TrainerTable trainers_;
  // Shared with the coroutines that receive into it.
  std::shared_ptr<Shard> shard_;
  std::string config_json_;
  std::vector<std::size_t> dealt_to_;  // elastic: ranks that share the step that is being made
  std::uint32_t generation_ = 0;
  bool over_ = false;  // no more steps are waited for
  Phase phase_ = Phase::kWaitingForChief;
  std::optional<WaitingRequest> shutdown_;  // the chief's, until everybody has left
  Clock::time_point goodbye_deadline_{};
};

}  // namespace disttf::roles
