// A range of the parameter vector as it is served by a ps: what trainers may say to it, who of them
// is there, and what they are answered. What happens to gradients is roles/ps/core/shard.h.
//   range_server.cc           its life: trainers come and go, time passes
//   range_server_run.cc       the chief begins a run: its configuration, its state
//   range_server_requests.cc  what a trainer may ask for, one handler a frame kind
//   range_server_answers.cc   when a trainer that waits is answered, and with what
//   range_server_cuts.cc      what the chief may ask for beside the steps: cuts
//   range_server_views.cc     replicas: what this host is to the range, as the chief tells it
//   range_server_primary.cc   replicas: fills the other host, and tells it each update
//   range_server_backup.cc    replicas: is filled, and told
//
// Everything runs on the ps's one thread. The process that it belongs to is
// roles/ps/shell/ps_process.h.
#pragma once

#include <asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "net/transport/server.h"
#include "net/wire/replication.h"
#include "roles/ps/core/shard.h"
#include "roles/ps/shell/answer_memory.h"
#include "roles/ps/shell/trainer_table.h"
#include "roles/run/outcome.h"
#include "roles/run/task.h"

namespace disttf::roles {

class ParameterServer;

class RangeServer {
 public:
  // `process` must outlive it. `replica`: 0, the range is this ps's own; 1, it is that of the ps
  // before it.
  RangeServer(ParameterServer& process, std::uint8_t replica);

  // The answer to a HELLO that fits the cluster.
  [[nodiscard]] std::variant<net::Welcome, net::Refusal> welcome(const net::Hello& hello) const;
  // Any channel but a control channel; ends with it.
  asio::awaitable<void> serve(Connection connection);
  // A control channel has come, beats with a trainer's generation, and has gone.
  void attach_control(const Connection& connection);
  void hear(const Connection& connection, std::uint32_t generation);
  [[nodiscard]] TrainerTable& trainers() noexcept { return trainers_; }
  void detach_control(const Connection& connection);

  // The last gradient of a step is about to come: the others are here, or there are none.
  [[nodiscard]] bool expects_gradient() const noexcept {
    return phase_ == Phase::kTraining && shard_ && shard_->lacks() == 1;
  }

  // The passage of time. `missed`: of the time until now, what this process did not see.
  void forgive(Clock::time_point now, Clock::duration missed);
  void close_silent(Clock::time_point now) { trainers_.close_silent(now); }
  void send_heartbeats();
  // Answers who waits for the end of the run, and ends this range's part of it when it is time to.
  void check_end();
  // REQUIRES: the run is over. Nobody is waited for: a signal has come, or the chief has not.
  void end_now();
  // Holds a copy for another ps. It is not told of the end before that ps ends.
  [[nodiscard]] bool is_backup() const noexcept { return standing_ == net::Standing::kBackup; }
  // Whose absence ends the run, if anybody's: the sentence.
  [[nodiscard]] std::optional<std::string> overdue(Clock::time_point now) const;

  // The run has failed: whoever is connected is told.
  void refuse_all(const net::Refusal& verdict);
  // The chief has said that the run is over.
  [[nodiscard]] bool is_finishing() const noexcept {
    return phase_ == Phase::kFinishing || phase_ == Phase::kEnded;
  }
  [[nodiscard]] bool has_ended() const noexcept { return phase_ == Phase::kEnded; }
  // Nobody has asked this ps to host the range of the one before it.
  [[nodiscard]] bool is_unused() const noexcept {
    return replica_ == 1 && standing_ == net::Standing::kOnly;
  }

 private:
  enum class Phase : std::uint8_t { kWaitingForChief, kTraining, kFinishing, kEnded };

  asio::awaitable<void> serve_step(Connection connection, std::size_t rank);
  asio::awaitable<void> serve_state(Connection connection);
  // A step channel has ended.
  void detach(const Connection& connection, std::size_t rank);

  // Replicas: what this host is to the range.
  asio::awaitable<void> serve_view(Connection connection);
  void take_view(const net::View& view);
  void become_primary();
  void become_backup();
  void forget_state();
  [[nodiscard]] net::Report report() const;
  [[nodiscard]] Clock::duration patience() const;
  void send_report();
  // The run is over for the range, as it was told to `chief`, or by the other host.
  void end(const Connection& chief);

  [[nodiscard]] net::TaskId other_host() const {
    return host_of_range(task_.cluster, index_, other_replica());
  }
  [[nodiscard]] std::uint8_t other_replica() const noexcept { return replica_ == 0 ? 1 : 0; }

  // Replicas: the primary's side.
  asio::awaitable<void> keep_backup();
  asio::awaitable<void> fill_backup(Connection connection);
  void send_state(const Connection& connection);
  void forward(const ShardUpdate& update);
  void lose_backup();
  // Whether the backup has what an answer to this request would tell.
  [[nodiscard]] bool is_safe(const WaitingRequest& request) const;

  // Replicas: the backup's side. false: the connection was refused or broke.
  asio::awaitable<void> serve_replica(Connection connection);
  asio::awaitable<bool> take_replica_frame(const Connection& connection,
                                           const net::FrameHeader& header);
  asio::awaitable<bool> take_config(const Connection& connection, const net::FrameHeader& header);
  asio::awaitable<bool> take_fill(const Connection& connection, const net::FrameHeader& header);
  asio::awaitable<bool> take_update(const Connection& connection, const net::FrameHeader& header);

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
  // Throws std::invalid_argument when this ps cannot serve such a run.
  [[nodiscard]] RunConfig checked_config(const std::string& json) const;
  // Throws std::bad_alloc.
  void make_shard(const RunConfig& config, const Connection& chief);
  // The gradient of a push, received and committed, or thrown away. `stands` stays false when the
  // state that it is about is no more.
  asio::awaitable<bool> take_gradient(const Connection& connection, std::size_t rank,
                                      const net::FrameHeader& header, bool& stands);
  asio::awaitable<bool> receive_gradient(const Connection& connection, std::size_t rank,
                                         const net::FrameHeader& header,
                                         const std::shared_ptr<Shard>& shard,
                                         std::span<float> destination);
  bool handle_bodiless(const Connection& connection, std::size_t rank,
                       const net::FrameHeader& header);

  // The end (range_server_end.cc).
  bool handle_goodbye(const Connection& connection, std::size_t rank,
                      const net::FrameHeader& header);
  bool handle_shutdown(const Connection& connection, std::size_t rank,
                       const net::FrameHeader& header);
  void end_steps();
  [[nodiscard]] bool may_leave(std::size_t rank) const;
  void fence_waiting();

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
  [[nodiscard]] std::uint64_t watch_sleep(std::size_t rank, std::uint64_t at);
  void leave_answer(std::size_t rank, const Connection& connection, const net::FrameHeader& header);
  [[nodiscard]] std::optional<std::string> fault_in(const net::FrameHeader& header) const;
  [[nodiscard]] std::optional<std::string> gradient_fault(const net::FrameHeader& header) const;
  [[nodiscard]] std::string status() const;
  bool refuse(const Connection& connection, const net::FrameHeader& header, ExitCode code,
              const std::string& sentence);

  [[nodiscard]] std::size_t rank_of(const Connection& connection) const {
    return task_.cluster.rank_of(connection->hello().from);
  }

  ParameterServer& process_;
  const std::uint8_t replica_;
  const std::size_t index_;  // of the range
  const Task& task_;         // the process's
  TrainerTable trainers_;
  // Shared with the coroutines that receive into it.
  std::shared_ptr<Shard> shard_;
  std::shared_ptr<AnswerMemory> answers_;  // the shard's arena; null: it has memory of its own
  std::string config_json_;
  std::vector<std::size_t> dealt_to_;  // elastic: ranks that share the step that is being made
  std::uint32_t generation_ = 0;
  bool over_ = false;  // no more steps are waited for
  Phase phase_ = Phase::kWaitingForChief;
  Clock::time_point chief_done_{};  // when the chief said that it has its result
  // The run is over, and the chief needs nothing more: since when.
  std::optional<Clock::time_point> chief_leaves_;

  // Replicas. Without them the standing stays kOnly, and all of this as it is.
  net::Standing standing_ = net::Standing::kOnly;
  net::View view_;                // the newest that the chief has told
  std::uint64_t lineage_;         // incarnation of the process in which this state began
  Connection view_channel_;       // the chief's; null: it is not there
  Connection backup_;             // primary: the other host, that is being filled or is complete
  bool reaching_ = false;         // primary: keep_backup() is under way
  bool needs_acks_ = false;       // primary: nothing is acknowledged that the backup has not
  bool backup_complete_ = false;  // primary: and knows it
  std::uint64_t log_head_ = 0;    // primary: the newest entry sent, or that would have been
  std::uint64_t log_acked_ = 0;   // primary: the newest that the backup has
  Connection primary_;            // backup: the other host
  bool filled_ = false;           // backup: its state has come whole over that connection
  bool complete_ = false;         // backup: holds all that was ever acknowledged
};

}  // namespace disttf::roles
