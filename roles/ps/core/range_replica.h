// One host's replica of a range of the parameter vector, and what trainers, the chief and the other
// host may say to it: who of them is there, and what they are answered. What happens to gradients
// is roles/ps/core/shard.h; who the trainers are is membership.h.
//   range_replica.cc           its life: connections come and go, time passes
//   range_replica_run.cc       the chief begins a run: its configuration, its state
//   range_replica_requests.cc  what a trainer may ask for, one handler a frame kind
//   range_replica_answers.cc   when a trainer that waits is answered, and with what
//   range_replica_end.cc       what is said of the end of a run; who may leave when is run_end.h
//   range_replica_views.cc     replicas: what this host is to the range, as the chief tells it
//   range_replica_primary.cc   replicas: fills the other host, and tells it each update
//   range_replica_backup.cc    replicas: is filled, and told; what it reads is backup_receiver.h
//
// A state machine. It is told what has happened, and at what time; what it wants done it puts into
// the outbox, which whoever calls it empties after each call (but for queries). No
// byte of a tensor passes through it: it says where the body of a frame goes, and is told that it
// has come.
//
// Not thread-safe: the ps's one thread owns it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "net/wire/cut_messages.h"
#include "net/wire/generation.h"
#include "net/wire/replication.h"
#include "roles/ps/core/backup_receiver.h"
#include "roles/ps/core/connection_map.h"
#include "roles/ps/core/membership.h"
#include "roles/ps/core/micro_batch_dealer.h"
#include "roles/ps/core/outbox.h"
#include "roles/ps/core/process_order.h"
#include "roles/ps/core/replication_log.h"
#include "roles/ps/core/run_end.h"
#include "roles/ps/core/shard.h"
#include "roles/run/outcome.h"
#include "roles/run/task.h"

namespace disttf::roles {

// What is to be read from a connection next.
struct BodyPlan {
  enum class Next : std::uint8_t {
    kHeader,   // a frame's header
    kInto,     // the body, or the next part of it, into `places`, in their order; then body()
    kDiscard,  // the same, `bytes` bytes to be thrown away
    kStop,     // nothing: what this connection says does not matter any more
  };
  Next next = Next::kHeader;
  std::span<const std::span<std::byte>> places = {};  // until body()
  std::uint64_t bytes = 0;

  // There is more of the frame.
  [[nodiscard]] bool is_body() const noexcept {
    return next == Next::kInto || next == Next::kDiscard;
  }
};

class RangeReplica {
 public:
  // `task` must outlive it. `replica`: 0, the range is this ps's own; 1, it is that of the ps
  // before it. `make_arena`: memory for a shard, as Arena says; may be empty. `threads`: that may
  // compute an update. `order`: of the ps; it must outlive this. Who is replaced by it does not get
  // here; what this range hears of trainers it is told.
  using MakeArena = std::function<Arena(std::size_t floats, std::size_t trainers)>;
  RangeReplica(const Task& task, std::uint8_t replica, std::size_t threads, MakeArena make_arena,
               ProcessOrder& order, Clock::time_point now);

  // --- connections

  // The answer to a HELLO that fits the cluster.
  [[nodiscard]] std::variant<net::Welcome, net::Refusal> welcome(const net::Hello& hello) const;
  // This host is the primary, and its copy lacks what the trainer that says HELLO was answered
  // with: the primary before it had gone on alone, and was lost with the chief that had let it, so
  // that the next chief has taken this copy for one that has everything.
  [[nodiscard]] bool lacks(const net::Hello& hello) const;
  // That copy is no state: the chief is to set all ps to one, in a new generation.
  void lose_state(Clock::time_point now);
  // It has been welcomed: a step, a view, or a replica channel. `peer`: how messages call it.
  // False: it is not to be read from.
  bool connected(ConnectionId id, const net::Hello& hello, const std::string& peer,
                 Clock::time_point now);
  // The other host was reached, over a replica channel, after may_fill().
  void reached(ConnectionId id, Clock::time_point now);
  // A frame's header has come. `in_place`: where its body lies, if it need not be read: it is then
  // read there until the frame is answered, unless the plan says where to copy it.
  BodyPlan header(ConnectionId id, const net::FrameHeader& header, Clock::time_point now,
                  const net::BodyInPlace& in_place = {});
  // What the plan said has been read.
  BodyPlan body(ConnectionId id, Clock::time_point now);
  // The connection is no more. What it was sending did not come whole.
  void closed(ConnectionId id, Clock::time_point now);

  // A control channel has come, beats with a trainer's generation, and has gone. hear(): why this
  // process is to leave the run, if it was replaced in it while it was silent.
  void attach_control(ConnectionId id, const net::Hello& hello, Clock::time_point now);
  [[nodiscard]] std::optional<std::string> hear(const net::Hello& hello, net::Generation generation,
                                                Clock::time_point now);
  void detach_control(ConnectionId id, const net::Hello& hello, Clock::time_point now);

  // --- time

  // `missed`: of the time until now, what this process did not see.
  void forgive(Clock::duration missed, Clock::time_point now);
  // Closes connections that have been silent for too long; and those of all trainers where this
  // host seems to have been replaced while it was silent.
  void close_silent(Clock::time_point now);
  void send_heartbeats(Clock::time_point now);
  // Answers who waits for the end of the run, and ends this range's part of it when it is time to.
  void check_end(Clock::time_point now);
  // Whose absence ends the run, if anybody's: the sentence.
  [[nodiscard]] std::optional<std::string> overdue(Clock::time_point now) const;

  // --- the end

  // REQUIRES: the run is over. Nobody is waited for: a signal has come, or the chief has not.
  void end_now(Clock::time_point now);
  // The run has failed: whoever is connected is told.
  void refuse_all(const net::Refusal& verdict);
  // The chief has said that the run is over.
  [[nodiscard]] bool is_finishing() const noexcept { return end_.is_over(); }
  [[nodiscard]] bool has_ended() const noexcept { return end_.has_ended(); }
  [[nodiscard]] net::Standing standing() const noexcept { return standing_; }
  // The newest that the chief has told.
  [[nodiscard]] const net::View& view() const noexcept { return view_; }
  // The shard's numbers are a state: restored, or copied, whole. (Not once the run has failed
  // here.)
  [[nodiscard]] bool holds_state() const noexcept {
    return !verdict_ && (is_backup() ? copy_ && copy_->is_filled() : is_restored_);
  }
  // Holds a copy for another ps. It is not told of the end before that ps ends.
  [[nodiscard]] bool is_backup() const noexcept { return standing_ == net::Standing::kBackup; }
  // Nobody has asked this ps to host the range of the one before it.
  [[nodiscard]] bool is_unused() const noexcept {
    return replica_ == 1 && standing_ == net::Standing::kOnly;
  }

  // --- queries

  // The last gradient of a step is about to come: the others are here, or there are none.
  [[nodiscard]] bool expects_gradient() const noexcept {
    return is_training() && shard_->lacks() == 1;
  }
  // Of which range, among all.
  [[nodiscard]] std::size_t index() const noexcept { return index_; }
  [[nodiscard]] std::uint8_t replica() const noexcept { return replica_; }
  [[nodiscard]] std::uint8_t other_replica() const noexcept { return replica_ == 0 ? 1 : 0; }
  [[nodiscard]] net::TaskId other_host() const {
    return host_of_range(task_.cluster, index_, other_replica());
  }
  [[nodiscard]] Membership& trainers() noexcept { return trainers_; }
  [[nodiscard]] const Membership& trainers() const noexcept { return trainers_; }
  [[nodiscard]] std::size_t rank_of(const net::Hello& hello) const {
    return task_.cluster.rank_of(hello.from);
  }
  // "ps 1 (10.0.0.7:2222)"
  [[nodiscard]] std::string self_text() const { return describe(task_.cluster, task_.self); }
  // nullptr before a configuration has come.
  [[nodiscard]] Shard* shard() const noexcept { return shard_.get(); }
  [[nodiscard]] net::Generation generation() const noexcept { return generation_; }
  // Incarnation of the process in which its state began.
  [[nodiscard]] std::uint64_t lineage() const noexcept { return lineage_; }
  // The cut that a request of the chief's is about, if there is one; made first, where it asks for
  // the state as it is now.
  [[nodiscard]] std::shared_ptr<const Cut> make_cut(const net::CutRequest& request);
  [[nodiscard]] std::shared_ptr<const Cut> kept_cut(std::uint64_t name,
                                                    net::Generation generation) const;

  // After ReachOut: whether the other host is still to be reached, and may be filled now.
  [[nodiscard]] bool reaches_out() const noexcept {
    return standing_ == net::Standing::kPrimary && !has_ended();
  }
  [[nodiscard]] bool may_fill() const noexcept {
    return standing_ == net::Standing::kPrimary && is_training() && !log_.needs_acks();
  }
  // It is no longer tried.
  void stopped_reaching() noexcept { reaching_ = false; }

  [[nodiscard]] Outbox& out() noexcept { return out_; }

 private:
  enum class Role : std::uint8_t { kTrainer, kView, kPrimary, kBackup };  // of a peer
  // Which part of which frame is being read.
  enum class Part : std::uint8_t {
    kNone,
    kPublish,
    kRestore,
    kStaleRestore,
    kGradient,
    kPackedGradient,
    kUnwantedGradient,  // a repeat, or one that came late
    kFencedGradient,    // of a state that is no more
    kView,
    kConfig,
    kOfPrimary,  // of what the primary copies: `copy` knows which
  };
  struct Connection {
    Connection(Role what, std::string name, const net::Hello& said)
        : role(what), peer(std::move(name)), hello(said) {}

    Role role;
    std::size_t rank = 0;  // of a trainer
    std::string peer;      // how messages call it
    net::Hello hello;
    // The frame that is being read.
    Part part = Part::kNone;
    net::FrameHeader header;
    std::shared_ptr<Shard> shard;  // that it goes into: kept while it does
    PushId push;
    std::span<float> gradient;     // where a packed one is unpacked to
    std::vector<std::byte> bytes;  // a body that is no tensor
    std::vector<std::span<std::byte>> places;
    std::shared_ptr<BackupReceiver> copy;  // of a primary: what it is copied to
  };

  // Steps are made here, or the last one has been.
  [[nodiscard]] bool is_training() const noexcept { return is_restored_ && !is_finishing(); }
  // Requests wait for a state.
  [[nodiscard]] bool awaits_state() const noexcept { return !is_restored_ && !is_finishing(); }
  // Says whether it is present from now on, and was not.
  bool attach(ConnectionId id, const net::Hello& hello);
  // In the log.
  void say_joined(std::size_t rank, const std::string& peer);
  void say_lost(std::size_t rank);
  // It cannot be sent parameters any more.
  void trainer_left(std::size_t rank);
  // How many trainers a step cannot be made without. 0: none, or none is to be made here.
  [[nodiscard]] std::size_t needed() const;
  // After either may have changed.
  void count_needed() { trainers_.need(needed(), now_); }
  BodyPlan trainer_header(ConnectionId id, Connection& from, const net::BodyInPlace& in_place);
  BodyPlan view_header(ConnectionId id, Connection& from);
  BodyPlan primary_header(ConnectionId id, Connection& from);
  BodyPlan backup_header(ConnectionId id, Connection& from);

  // Plans.
  static BodyPlan into(Connection& from, Part part);  // `from.places`
  static BodyPlan into(Connection& from, Part part, std::span<std::byte> place);
  static BodyPlan into_bytes(Connection& from, Part part, std::size_t size);
  BodyPlan discard(ConnectionId id, Connection& from, Part part);
  // Says why, and closes. Returns kStop.
  BodyPlan refuse(ConnectionId id, const Connection& from, ExitCode code,
                  const std::string& sentence);

  // A run begins.
  BodyPlan publish_header(ConnectionId id, Connection& from);
  BodyPlan publish_came(ConnectionId id, Connection& from);
  BodyPlan restore_header(ConnectionId id, Connection& from);
  BodyPlan restore_came(ConnectionId id, Connection& from);
  // Before a restore: connections whose last reply borrows what it goes into.
  void close_overtaken();
  // Throws std::invalid_argument when this ps cannot serve such a run.
  [[nodiscard]] RunConfig checked_config(const std::string& json) const;
  // Throws std::bad_alloc. `chief`: the connection that is not closed.
  void make_shard(const RunConfig& config, ConnectionId chief);
  void drop_shard();

  // Requests.
  BodyPlan push_header(ConnectionId id, Connection& from, const net::BodyInPlace& in_place);
  BodyPlan admit(ConnectionId id, Connection& from, const net::BodyInPlace& in_place);
  BodyPlan packed_gradient_came(ConnectionId id, Connection& from);
  BodyPlan commit(ConnectionId id, Connection& from, const net::BodyInPlace& in_place);
  [[nodiscard]] bool is_of_this_state(const net::FrameHeader& header) const;
  BodyPlan push_ended(ConnectionId id, Connection& from, bool stands);
  BodyPlan bodiless(ConnectionId id, Connection& from);
  BodyPlan return_beat(ConnectionId id, const Connection& from);
  BodyPlan send_status(ConnectionId id, const Connection& from);
  // A request without a body; refused where its header does not say it.
  template <typename Request>
  BodyPlan ask(ConnectionId id, Connection& from);
  [[nodiscard]] std::optional<std::string> fault_in(const net::FrameHeader& header) const;
  [[nodiscard]] std::optional<std::string> gradient_fault(const net::FrameHeader& header,
                                                          bool is_in_place) const;
  [[nodiscard]] std::string status() const;

  // The end.
  BodyPlan goodbye(ConnectionId id, Connection& from);
  BodyPlan shutdown(ConnectionId id, Connection& from);
  // REQUIRES: there is a shard, restored.
  [[nodiscard]] bool may_be_result() const;
  void fence_waiting();
  // The run is over for the range, as it was told to `chief`, or by the other host.
  void end(ConnectionId chief);

  // Answers.
  // The request is about a state that is no more: its sender is to pull again.
  void fence(ConnectionId id, std::uint64_t request_id);
  void wait_for_answer(std::size_t rank, ConnectionId id, const net::TrainerRequest& request);
  // All who wait and can be answered now; this one if it can. answer_after(): this one, and if a
  // trainer has released others by what it did, all.
  void answer_waiting();
  void answer(std::size_t rank);
  void answer_after(std::size_t rank);
  [[nodiscard]] bool is_answerable(std::size_t rank, const WaitingRequest& waiting) const;
  // Elastic: what the dealer is told of the trainers; valid until the next call.
  [[nodiscard]] std::span<const MicroBatchDealer::Activity> activities();
  // What is missing of the step, to those who wait, where nobody is at work.
  void deal_missing();
  void send_config(const WaitingRequest& request);
  void send_parameters(std::size_t rank, const WaitingRequest& request);

  // Replicas: what this host is to the range.
  void take_view(const net::View& view);
  void become_primary(bool is_next);
  void become_backup();
  void forget_state();
  [[nodiscard]] net::Report report() const;
  [[nodiscard]] Clock::duration patience() const;
  void send_report();
  // The primary's side.
  void send_state(ConnectionId to);
  void forward(const ShardUpdate& update);
  void lose_backup();
  // Whether the backup has what an answer to this request would tell.
  [[nodiscard]] bool is_safe(const WaitingRequest& request) const;
  // The backup's side.
  BodyPlan config_came(ConnectionId id, Connection& from);
  BodyPlan received(ConnectionId id, Connection& from, const BackupReceiver::Outcome& outcome);
  [[nodiscard]] bool is_complete_copy() const noexcept { return copy_ && copy_->is_complete(); }

  const Task& task_;
  ProcessOrder& order_;
  const std::uint8_t replica_;
  const std::size_t index_;  // of the range
  const std::size_t threads_;
  const MakeArena make_arena_;
  Outbox out_;
  Clock::time_point now_;  // of the call under way
  Membership trainers_;
  ConnectionMap<Connection> connections_;
  std::shared_ptr<Shard> shard_;  // shared with what is being received into it, and sent from it
  std::uint64_t looked_at_ = 0;   // Shard::releases() when all who wait were last looked at
  std::string config_json_;
  std::optional<MicroBatchDealer> dealer_;              // of the shard, in an elastic run
  std::vector<MicroBatchDealer::Activity> activities_;  // memory for activities()
  net::Generation generation_ = 0;
  std::uint64_t restores_ = 0;  // begun here
  // The shard's numbers are a state that steps are made from: set by the chief, or by the primary
  // whose place this host has taken. (While it is a backup see copy_.)
  bool is_restored_ = false;
  RunEnd end_;
  std::optional<net::Refusal> verdict_;  // the run has failed: what peers are told

  // Replicas. Without them the standing stays kOnly, and all of this as it is.
  net::Standing standing_ = net::Standing::kOnly;
  net::View view_;                 // the newest that the chief has told
  std::uint64_t lineage_;          // incarnation of the process in which this state began
  ConnectionId view_channel_ = 0;  // the chief's
  // Of a chief that is here: since when it has had no view channel.
  Clock::time_point views_lost_{};
  ConnectionId backup_ = 0;   // primary: the other host, that is being filled or is complete
  bool reaching_ = false;     // primary: ReachOut is under way
  ReplicationLog log_;        // primary
  ConnectionId primary_ = 0;  // backup: the other host
  // Backup: what the newest primary has copied here; also when that is gone.
  std::shared_ptr<BackupReceiver> copy_;
};

}  // namespace disttf::roles
