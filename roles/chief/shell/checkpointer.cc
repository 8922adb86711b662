#include "roles/chief/shell/checkpointer.h"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "math/optimizer.h"
#include "roles/chief/core/snapshot_coordinator.h"
#include "roles/chief/shell/snapshot_link.h"
#include "roles/trainer/shell/trainer.h"
#include "run/monitor/shell/meters.h"
#include "run/outcome.h"
#include "run/process/log.h"
#include "run/process/machine.h"
#include "run/process/start_thread.h"
#include "run/process/tensor_memory.h"
#include "run/run_config.h"
#include "storage/checkpoint/core/checkpoint_reader.h"
#include "storage/checkpoint/core/checkpoint_store.h"
#include "storage/store/shell/storage.h"

namespace disttf::roles {
namespace {

using std::chrono::milliseconds;

// The pause between attempts to reach a store that is unavailable.
constexpr milliseconds kStorePause{1000};

SnapshotCoordinator::Options coordinator_options(const Task& task, const CheckpointOptions& options,
                                                 const RunConfig& config) {
  SnapshotCoordinator::Options wanted{.ps = {},
                                      .replicated = config.ps_replicas > 1,
                                      .sharded = options.sharded,
                                      .same_step = config.every_gradient_counts()};
  for (std::size_t index = 0; index < task.cluster.ps.size(); ++index) {
    wanted.ps.push_back(describe(task.cluster, {.job = net::Job::kPs, .index = index}));
  }
  return wanted;
}

}  // namespace

class Checkpointer::Impl {
 public:
  Impl(const Task& task, const CheckpointOptions& options, const RunConfig& config,
       const math::ParameterLayout& layout, OnSaved on_saved, Permit permit)
      : task_(task),
        options_(options),
        config_(config),
        config_json_(to_saved_json(config)),
        layout_(layout),
        on_saved_(std::move(on_saved)),
        store_(disk_, options.train_dir, std::move(permit)),
        schedule_(options, config.train_steps, net::Clock::now()),
        coordinator_(coordinator_options(task, options, config), random_number()) {
    // An optimizer of size 0 names its tensors without taking memory for them.
    for (const auto& tensor : math::Optimizer(config.optimizer, 0, config.isa).state()) {
      tensor_names_.emplace_back(tensor.name);
    }
    if (task.meters != nullptr && !options.train_dir.empty()) {
      meters_ = &task.meters->checkpoints();
    }
    // Saving during training yields to computing: it has lower priority.
    thread_ = start_background_thread([this] { work(/*now=*/false); });
    try {
      // At normal priority, since the trainer waits for this thread's snapshots.
      urgent_thread_ = start_thread([this] { work(/*now=*/true); });
    } catch (...) {
      // The first thread runs already, and has to be joined.
      stop();
      throw;
    }
  }

  ~Impl() { stop(); }

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  bool wants_snapshot(std::uint64_t step) {
    is_under_way_ = true;
    return schedule_.wants(step, is_busy(), net::Clock::now());
  }

  void ask() noexcept { schedule_.ask(); }

  void start(const SnapshotRequest& job) {
    {
      const std::scoped_lock lock(mutex_);
      // One job at a time: callers wait for the previous one, or do without this snapshot.
      if (job_) {
        return;
      }
      job_ = job;
    }
    wake_.notify_all();
  }

  void wait_until_idle(net::Deadline deadline) {
    std::unique_lock lock(mutex_);
    wake_.wait_until(lock, deadline, [this] { return !job_; });
  }

  void keep(const EarlyStopState& early_stop_state) {
    const std::scoped_lock lock(mutex_);
    // A checkpoint contains what is set when its state has been collected.
    early_stop_state_ = early_stop_state;
  }

  // Of the last job.
  bool is_done() {
    const std::scoped_lock lock(mutex_);
    return !job_ && last_done_;
  }

  std::optional<TrainingState> newest() {
    {
      const std::scoped_lock lock(mutex_);
      if (newest_) {
        // Copied under the lock: KeepState reuses the memory of an older state.
        return copy_of(*newest_);
      }
    }
    if (options_.train_dir.empty()) {
      return std::nullopt;
    }
    // While a checkpoint is read, no save may remove it.
    const std::scoped_lock lock(directory_mutex_);
    const auto begun = net::Clock::now();
    auto loaded = load_newest();
    if (!loaded) {
      return std::nullopt;
    }
    // Weights for other examples are of no use, so this is an error and no warning.
    if (const auto sentence = other_examples(config_, loaded->config_json)) {
      throw Failure(kUsage, loaded->path.string() + ": " + *sentence);
    }
    const std::chrono::duration<double> elapsed = net::Clock::now() - begun;
    const std::size_t tensors = 1 + loaded->state.optimizer.size();
    const auto bytes =
        static_cast<double>(tensors * loaded->state.parameters.size() * sizeof(float));
    log_info(fmt::format("Restoring from {}: global step {}, {:.1f} MB read in {:.3f} s",
                         loaded->path.string(), loaded->state.step, bytes / 1e6, elapsed.count()));
    if (const auto sentence = fit_optimizer(loaded->state, config_.optimizer)) {
      log_warning(*sentence);
    }
    if (const auto sentence = difference(config_, loaded->config_json)) {
      log_warning(*sentence);
    }
    // With this configuration the run would not have stopped there, so training continues.
    if (!stops_alike(config_, loaded->config_json)) {
      loaded->state.early_stop_state.step = 0;
    }
    // The losses of the two are not comparable.
    if (!evaluates_alike(config_, loaded->config_json)) {
      loaded->state.early_stop_state.best = {};
    }
    return std::move(loaded->state);
  }

 private:
  void stop() {
    {
      const std::scoped_lock lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    interrupt_.interrupt();
    for (std::thread* const thread : {&thread_, &urgent_thread_}) {
      if (thread->joinable()) {
        thread->join();
      }
    }
  }

  [[nodiscard]] bool is_busy() {
    const std::scoped_lock lock(mutex_);
    return job_.has_value();
  }

  // A store that is unavailable may come back; starting from scratch instead would lose the run. A
  // directory that cannot be read at the start is a mistake of the user, and ends the task. A
  // directory that could be read and no longer can (it was moved or remounted, or is another one
  // that the sandbox does not cover) is a failing disk, and the run goes on without it.
  std::optional<LoadedCheckpoint> load_newest() {
    // An unavailable store gets as much time as a lost ps.
    const auto deadline = net::Clock::now() + task_.timeouts.peer;
    while (true) {
      try {
        return store_.load_newest(layout_, [](const std::string& text) { log_warning(text); });
      } catch (const std::system_error& error) {
        if (!is_away(error.code())) {
          if (!is_under_way_) {
            throw;
          }
          log_warning(std::string(error.what()) +
                      "; no checkpoint can be read, so the run goes back to the beginning");
          return std::nullopt;
        }
        if (net::Clock::now() >= deadline) {
          throw Failure(kLostPeers, error.what());
        }
        log_warning(std::string(error.what()) + "; trying again");
        interrupt_.wait_until(net::Clock::now() + kStorePause);
      }
    }
  }

  [[nodiscard]] EarlyStopState early_stop_state() {
    const std::scoped_lock lock(mutex_);
    return early_stop_state_;
  }

  // One thread makes the snapshots that are waited for, the other those that are saved during
  // training.
  void work(bool now) {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this, now] { return stopping_ || (job_ && job_->now == now); });
      if (stopping_) {
        return;
      }
      // A copy, since the mutex is not held while the snapshot is made.
      const SnapshotRequest job = *job_;
      lock.unlock();
      bool done = true;
      try {
        done = save(job);
      } catch (const std::exception&) {  // there is no memory for the sentence either
        links_.clear();
      }
      lock.lock();
      job_.reset();
      last_done_ = done;
      wake_.notify_all();
    }
  }

  // Returns false if the ps have lost the snapshot, or have a newer one. The next one will do.
  bool save(const SnapshotRequest& request) {
    const auto began = net::Clock::now();
    SnapshotAction action = coordinator_.begin(request);
    while (!std::holds_alternative<SnapshotDone>(action)) {
      try {
        action = std::visit([&](auto& each) { return carry_out(request, each); }, action);
      } catch (...) {
        // Whatever has failed, the coordinator decides what is left to do, such as removing files.
        action = coordinator_.failed(failure_of(std::current_exception()).what());
      }
    }
    const auto& done = std::get<SnapshotDone>(action);
    // Roles may have changed, and a part of a state is of no use.
    if (!done.step) {
      links_.clear();
      collected_ = {};
    }
    measure(done, net::Clock::now() - began);
    if (!done.why_not.empty()) {
      log_warning("no checkpoint was saved: " + done.why_not);
    } else if (done.step && !options_.train_dir.empty()) {
      const std::chrono::duration<double> took = net::Clock::now() - began;
      on_saved_({.step = *done.step,
                 .name = std::move(saved_.name),
                 .bytes = saved_.size_bytes,
                 .seconds = took.count(),
                 .weights_sha256 = std::move(saved_.weights_sha256)});
      log_info(fmt::format("Saved checkpoint at global step {} in {} ({:.3f} s)", *done.step,
                           options_.train_dir.string(), took.count()));
    }
    return done.is_done;
  }

  void measure(const SnapshotDone& done, std::chrono::nanoseconds time) const {
    if (meters_ == nullptr) {
      return;
    }
    if (!done.why_not.empty()) {
      meters_->failed();
    } else if (done.step) {
      meters_->saved(bytes_of(layout_.size()), time);
    }
  }

  // Each carries out a request and reports the result to the coordinator.
  SnapshotAction carry_out(const SnapshotRequest& request, const ConnectToHost& action) {
    const std::size_t bytes = options_.sharded ? 0 : bytes_of(range_of(action.ps).size());
    // Links are kept between snapshots, so that each ps is connected to once.
    const auto link = links_.try_emplace(action.ps, task_, action.ps, bytes, interrupt_).first;
    return coordinator_.connected(link->second.connect(request, action.replica), net::Clock::now());
  }

  SnapshotAction carry_out(const SnapshotRequest& request, const FindSnapshot& action) {
    const auto found = links_.find(action.ps);
    if (found == links_.end()) {
      // A link that was dropped meanwhile has to be opened again.
      return coordinator_.found(std::nullopt, net::Clock::now());
    }
    SnapshotLink& link = found->second;
    std::uint64_t step = 0;
    const std::error_code error =
        action.fetch ? fetch(link, request, action.ps, step) : link.find(request, step);
    return coordinator_.found(error ? std::nullopt : std::optional(step), net::Clock::now());
  }

  SnapshotAction carry_out(const SnapshotRequest& request, const RequestShardWrite& action) {
    SnapshotLink& link = links_.at(action.ps);
    if (const auto error = link.start_writing(request, action.id)) {
      return coordinator_.told(link.name() + " could not be asked to write: " + error.message());
    }
    return coordinator_.told(std::nullopt);
  }

  SnapshotAction carry_out(const SnapshotRequest& /*request*/, const AwaitWritten& action) {
    return coordinator_.written(links_.at(action.ps).await_written(action.deadline));
  }

  SnapshotAction carry_out(const SnapshotRequest& /*request*/, const KeepState& action) {
    collected_.step = action.step;
    collected_.early_stop_state = early_stop_state();
    // Shared, so that it can be written without the mutex while newest() copies it.
    const auto state = std::make_shared<TrainingState>(std::move(collected_));
    collected_ = {};
    {
      const std::scoped_lock lock(mutex_);
      const auto before = std::exchange(newest_, state);
      if (before && bytes_of(layout_.size()) <= kSmallStateBytes) {
        collected_ = std::move(*before);  // not shared: newest() copies under this lock
      }
    }
    log_debug("Snapshot of global step " + std::to_string(action.step) + " is in memory");
    if (!options_.train_dir.empty()) {
      // Not under mutex_: a write takes long, and the computing thread must not wait for it.
      const std::scoped_lock lock(directory_mutex_);
      saved_ = store_.save(action.attempt, *state, layout_, config_json_, options_.max_to_keep);
    }
    return coordinator_.stored();
  }

  // This chief keeps no copy. What the ps have written serves a lost ps as well, and sharding is
  // for states that are too large for one task to fetch every few seconds. In return, if a ps is
  // lost while nothing can be written, the run is rolled back to the newest checkpoint. Steps are a
  // function of the state, so the result is unaffected.
  SnapshotAction carry_out(const SnapshotRequest& /*request*/, const CommitShards& action) {
    const std::scoped_lock lock(directory_mutex_);
    saved_ = store_.commit_shards(action.id, action.files, layout_, config_json_,
                                  options_.max_to_keep, early_stop_state());
    return coordinator_.stored();
  }

  SnapshotAction carry_out(const SnapshotRequest& /*request*/, const DiscardShards& action) {
    // Not under directory_mutex_: these files belong to no checkpoint that a reader could find.
    store_.discard_shards(action.id);
    return coordinator_.discarded(net::Clock::now());
  }

  SnapshotAction carry_out(const SnapshotRequest& /*request*/, const PauseSnapshot& action) {
    // Roles may change during the pause.
    links_.clear();
    if (interrupt_.wait_until(action.until)) {
      return SnapshotDone{};
    }
    return coordinator_.paused();
  }

  static SnapshotAction carry_out(const SnapshotRequest& /*request*/, SnapshotDone& action) {
    return std::move(action);
  }

  [[nodiscard]] math::Range range_of(std::size_t ps) const {
    return math::shard_range(layout_.size(), ps, task_.cluster.ps.size());
  }

  // Bytes of the state of this many parameters.
  [[nodiscard]] std::size_t bytes_of(std::size_t parameters) const {
    return (1 + tensor_names_.size()) * parameters * sizeof(float);
  }

  // Allocates memory for a fetched state.
  void make_room() {
    TrainingState room;
    room.parameters = math::AlignedVector::for_overwrite(layout_.size());
    for (const std::string& name : tensor_names_) {
      room.optimizer.push_back(
          {.name = name, .values = math::AlignedVector::for_overwrite(layout_.size())});
    }
    // Assigned last: an exception leaves no half of it.
    collected_ = std::move(room);
  }

  std::error_code fetch(SnapshotLink& link, const SnapshotRequest& request, std::size_t ps,
                        std::uint64_t& step) {
    // KeepState may have left the memory of an older state here.
    if (collected_.parameters.size() == 0) {
      make_room();
    }
    const math::Range range = range_of(ps);
    std::vector<std::span<float>> places = {
        collected_.parameters.span().subspan(range.begin, range.size())};
    for (TrainingState::Tensor& tensor : collected_.optimizer) {
      places.push_back(tensor.values.span().subspan(range.begin, range.size()));
    }
    return link.fetch(request, range.begin, places, step);
  }

  // Constant.
  const Task& task_;
  const CheckpointOptions& options_;
  const RunConfig config_;
  const std::string config_json_;
  const math::ParameterLayout& layout_;
  const OnSaved on_saved_;
  Storage disk_;
  CheckpointStore store_;                  // changed and read under directory_mutex_
  std::vector<std::string> tensor_names_;  // of the optimizer's state
  CheckpointMeters* meters_ = nullptr;     // null: metrics are off
  // Of the computing thread.
  SnapshotSchedule schedule_;
  bool is_under_way_ = false;  // a step was made: so the directory could be read at the start
  // Of the other thread that has a job.
  SnapshotCoordinator coordinator_;
  net::Interrupt interrupt_;                   // set by any thread
  std::map<std::size_t, SnapshotLink> links_;  // open ones, by ps
  TrainingState collected_;                    // fetched so far; or empty memory, or nothing
  SavedCheckpoint saved_;                      // the last one
  // Shared by all threads.
  std::mutex mutex_;
  std::condition_variable wake_;
  std::optional<SnapshotRequest> job_;  // in progress or about to be
  bool last_done_ = false;              // there was nothing more to try
  bool stopping_ = false;
  EarlyStopState early_stop_state_;
  std::shared_ptr<TrainingState> newest_;  // not changed while it is the newest
  // Held while train_dir is read or receives a checkpoint: a checkpoint being read must not be
  // removed.
  std::mutex directory_mutex_;

  std::thread thread_;
  std::thread urgent_thread_;
};

Checkpointer::Checkpointer(const Task& task, const CheckpointOptions& options,
                           const RunConfig& config, const math::ParameterLayout& layout,
                           OnSaved on_saved, Permit permit)
    : impl_(std::make_unique<Impl>(task, options, config, layout, std::move(on_saved),
                                   std::move(permit))) {}
Checkpointer::~Checkpointer() = default;

bool Checkpointer::wants_snapshot(std::uint64_t step) { return impl_->wants_snapshot(step); }

void Checkpointer::ask() { impl_->ask(); }

void Checkpointer::collect(std::uint64_t sequence, net::Generation generation) {
  impl_->start({.sequence = sequence, .generation = generation});
}

void Checkpointer::keep(const EarlyStopState& early_stop_state) { impl_->keep(early_stop_state); }

std::optional<TrainingState> Checkpointer::newest() { return impl_->newest(); }

void Checkpointer::save_now(net::Generation generation, net::Deadline deadline) {
  // What is in progress may be a snapshot of an earlier step.
  impl_->wait_until_idle(deadline);
  impl_->start({.generation = generation, .now = true, .deadline = deadline});
  impl_->wait_until_idle(deadline);
}

bool Checkpointer::save_final(net::Generation generation, net::Deadline deadline) {
  impl_->wait_until_idle(deadline);
  impl_->start({.generation = generation, .now = true, .again = false, .deadline = deadline});
  impl_->wait_until_idle(deadline);
  return impl_->is_done();
}

}  // namespace disttf::roles
