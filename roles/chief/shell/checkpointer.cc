#include "roles/chief/shell/checkpointer.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <span>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "data/posix_file_system.h"
#include "math/optimizer.h"
#include "roles/checkpoint/core/checkpoint_store.h"
#include "roles/chief/shell/cut_link.h"
#include "roles/chief/shell/sharded_save.h"
#include "roles/process/log.h"
#include "roles/process/machine.h"
#include "roles/process/start_thread.h"
#include "roles/run/outcome.h"

namespace disttf::roles {
namespace {

using std::chrono::milliseconds;

// A state that moves while it is asked for is asked for again this often.
constexpr milliseconds kAskAgain{20};
}  // namespace

class Checkpointer::Impl {
 public:
  Impl(const Task& task, const CheckpointOptions& options, const RunConfig& config,
       const math::ParameterLayout& layout)
      : task_(task),
        options_(options),
        config_(config),
        config_json_(to_json(config)),
        layout_(layout),
        store_(disk_, options.train_dir),
        next_time_(net::Clock::now() + options.save_secs) {
    for (const auto& tensor : math::Optimizer(config.optimizer, 0, config.isa).state()) {
      tensor_names_.emplace_back(tensor.name);
    }
    thread_ = start_thread([this] { work(); });
  }

  ~Impl() {
    {
      const std::scoped_lock lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    interrupt_.interrupt();
    thread_.join();
  }

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  bool wants_cut(std::uint64_t step) {
    const auto now = net::Clock::now();
    if ((options_.save_steps != 0 && step % options_.save_steps == 0) ||
        (options_.save_secs.count() != 0 && now >= next_time_)) {
      due_ = true;
    }
    if (!due_ || step >= config_.train_steps || is_busy()) {  // the last one is saved by save_now()
      return false;
    }
    due_ = false;
    next_time_ = now + options_.save_secs;
    return true;
  }

  void start(const CutRequest& job) {
    {
      const std::scoped_lock lock(mutex_);
      if (job_) {
        return;
      }
      job_ = job;
      job_->replicated = config_.ps_replicas > 1;
    }
    wake_.notify_all();
  }

  void wait_until_idle(net::Deadline deadline) {
    std::unique_lock lock(mutex_);
    wake_.wait_until(lock, deadline, [this] { return !job_; });
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
        return copy_of(*newest_);
      }
    }
    if (options_.train_dir.empty()) {
      return std::nullopt;
    }
    const std::scoped_lock lock(directory_mutex_);
    auto loaded = store_.load_newest(layout_, [](const std::string& text) { log_warning(text); });
    if (!loaded) {
      return std::nullopt;
    }
    log_info("Restoring from " + loaded->path.string() + ": global step " +
             std::to_string(loaded->state.step));
    if (const auto sentence = fit_optimizer(loaded->state, config_.optimizer)) {
      log_warning(*sentence);
    }
    if (const auto sentence = difference(config_, loaded->config_json)) {
      log_warning(*sentence);
    }
    return std::move(loaded->state);
  }

 private:
  [[nodiscard]] bool is_busy() {
    const std::scoped_lock lock(mutex_);
    return job_.has_value();
  }

  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return job_ || stopping_; });
      if (stopping_) {
        return;
      }
      const CutRequest job = *job_;
      lock.unlock();
      bool done = true;
      try {
        done = save(job);
      } catch (...) {
        warn_of(std::current_exception());
      }
      lock.lock();
      job_.reset();
      last_done_ = done;
      wake_.notify_all();
    }
  }

  // Of a checkpoint that was not saved: the next cut will do.
  static void warn_of(const std::exception_ptr& exception) {
    try {
      log_warning(std::string("no checkpoint was saved: ") + failure_of(exception).what());
    } catch (const std::exception&) {  // there is no memory for the line either
    }
  }

  bool save(const CutRequest& cut) {
    bool saved = try_save(cut);
    while (!saved && cut.now && cut.again && net::Clock::now() + kAskAgain < cut.deadline &&
           !interrupt_.wait_until(net::Clock::now() + kAskAgain)) {
      saved = try_save(cut);
    }
    return saved;
  }

  // False: the ps have lost it, or moved on. The next one will do.
  bool try_save(const CutRequest& cut) {
    const auto step = options_.sharded ? save_sharded(cut) : save_collected(cut);
    if (step && !options_.train_dir.empty()) {
      log_info("Saved checkpoint at global step " + std::to_string(*step) + " in " +
               options_.train_dir.string());
    }
    return step.has_value();
  }

  // Nothing of it is kept here: what the ps have written serves a ps that is lost as well, and a
  // state that is too much for one task to take from the ps every few seconds is what sharding is
  // for. The price is that a ps that is lost while nothing can be written sets the run back to the
  // newest checkpoint; steps are a function of the state, so the bits do not suffer.
  std::optional<std::uint64_t> save_sharded(const CutRequest& cut) {
    const auto written =
        write_shards(task_, cut, config_.every_gradient_counts(), store_, interrupt_);
    if (!written) {
      return std::nullopt;
    }
    try {
      const std::scoped_lock lock(directory_mutex_);
      store_.commit_shards(written->id, written->files, layout_, config_json_,
                           options_.max_to_keep);
    } catch (...) {
      store_.discard_shards(written->id);
      throw;
    }
    return written->id.step;
  }

  std::optional<std::uint64_t> save_collected(const CutRequest& cut) {
    std::optional<TrainingState> state = collect(cut);
    if (!state) {
      return std::nullopt;
    }
    const auto shared = std::make_shared<const TrainingState>(std::move(*state));
    {
      const std::scoped_lock lock(mutex_);
      newest_ = shared;
    }
    if (!options_.train_dir.empty()) {
      const std::scoped_lock lock(directory_mutex_);
      store_.save(random_incarnation(), *shared, layout_, config_json_, options_.max_to_keep);
    }
    return shared->step;
  }

  // nullopt: some ps is gone, does not have it, or is at another step.
  std::optional<TrainingState> collect(const CutRequest& cut) {
    TrainingState state;
    state.parameters = math::AlignedVector(layout_.size());
    for (const std::string& name : tensor_names_) {
      state.optimizer.push_back({.name = name, .values = math::AlignedVector(layout_.size())});
    }
    const std::size_t ps_count = task_.cluster.ps.size();
    for (std::size_t index = 0; index < ps_count; ++index) {
      const math::Range range = math::shard_range(layout_.size(), index, ps_count);
      std::vector<std::span<float>> places = {
          state.parameters.span().subspan(range.begin, range.size())};
      for (TrainingState::Tensor& tensor : state.optimizer) {
        places.push_back(tensor.values.span().subspan(range.begin, range.size()));
      }
      std::uint64_t step = 0;
      CutLink link(task_, index, interrupt_);
      if (link.open(cut) || link.fetch(cut, range.begin, places, step)) {
        return std::nullopt;
      }
      if (index == 0) {
        state.step = step;
      } else if (step != state.step && config_.every_gradient_counts()) {
        return std::nullopt;
      }
    }
    return state;
  }

  // Constant.
  const Task& task_;
  const CheckpointOptions& options_;
  const RunConfig config_;
  const std::string config_json_;
  const math::ParameterLayout& layout_;
  data::PosixFileSystem disk_;
  const CheckpointStore store_;
  std::vector<std::string> tensor_names_;  // of the optimizer's state
  // The computing thread's.
  bool due_ = false;
  net::Deadline next_time_;
  // Shared by both threads.
  std::mutex mutex_;
  std::condition_variable wake_;
  std::optional<CutRequest> job_;  // under way or about to be
  bool last_done_ = false;         // there was nothing more to try
  bool stopping_ = false;
  std::shared_ptr<const TrainingState> newest_;
  // Held while train_dir gets a checkpoint or is read: what is being read must not be removed.
  std::mutex directory_mutex_;

  net::Interrupt interrupt_;
  std::thread thread_;
};

Checkpointer::Checkpointer(const Task& task, const CheckpointOptions& options,
                           const RunConfig& config, const math::ParameterLayout& layout)
    : impl_(std::make_unique<Impl>(task, options, config, layout)) {}
Checkpointer::~Checkpointer() = default;

bool Checkpointer::wants_cut(std::uint64_t step) { return impl_->wants_cut(step); }

void Checkpointer::collect(std::uint64_t sequence, std::uint32_t generation) {
  impl_->start({.sequence = sequence, .generation = generation});
}

std::optional<TrainingState> Checkpointer::newest() { return impl_->newest(); }

void Checkpointer::save_now(std::uint32_t generation, std::chrono::milliseconds limit) {
  const auto deadline = net::Clock::now() + limit;
  impl_->wait_until_idle(deadline);
  impl_->start({.generation = generation, .now = true, .deadline = deadline});
  impl_->wait_until_idle(deadline);
}

bool Checkpointer::save_final(std::uint32_t generation, net::Deadline deadline) {
  impl_->wait_until_idle(deadline);
  impl_->start({.generation = generation, .now = true, .again = false, .deadline = deadline});
  impl_->wait_until_idle(deadline);
  return impl_->is_done();
}

}  // namespace disttf::roles
