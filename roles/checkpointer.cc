#include "roles/checkpointer.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "math/optimizer.h"
#include "net/peer.h"
#include "roles/checkpoint.h"
#include "roles/log.h"

namespace disttf::roles {
namespace {

using net::FrameHeader;
using net::FrameKind;
using std::chrono::milliseconds;

// A state that moves while it is asked for is asked for again this often.
constexpr milliseconds kAskAgain{20};
// What a link must carry at least: as on the step channel.
constexpr std::size_t kSlowestBytesPerSecond = 128 * 1024;

struct Job {
  std::uint64_t sequence = 0;
  std::uint32_t generation = 0;
  bool now = false;  // the state as it is, rather than a cut that was kept
  net::Deadline deadline = net::Deadline::max();
};

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
        directory_(options.train_dir),
        next_time_(net::Clock::now() + options.save_secs) {
    for (const auto& tensor : math::Optimizer(config.optimizer, 0, config.isa).state()) {
      tensor_names_.emplace_back(tensor.name);
    }
    thread_ = std::thread([this] { work(); });
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

  void start(const Job& job) {
    {
      const std::scoped_lock lock(mutex_);
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
    auto loaded =
        directory_.load_newest(layout_, [](const std::string& text) { log_warning(text); });
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
      const Job job = *job_;
      lock.unlock();
      try {
        save(job);
      } catch (const std::exception& error) {
        log_warning(std::string("no checkpoint was saved: ") + error.what());
      }
      lock.lock();
      job_.reset();
      wake_.notify_all();
    }
  }

  void save(const Job& job) {
    std::optional<TrainingState> state = collect(job);
    while (!state && job.now && net::Clock::now() + kAskAgain < job.deadline &&
           !interrupt_.wait_until(net::Clock::now() + kAskAgain)) {
      state = collect(job);
    }
    if (!state) {
      return;  // the ps have lost it, or moved on: the next one will do
    }
    const auto shared = std::make_shared<const TrainingState>(std::move(*state));
    {
      const std::scoped_lock lock(mutex_);
      newest_ = shared;
    }
    if (!options_.train_dir.empty()) {
      directory_.save(*shared, layout_, config_json_, options_.max_to_keep);
      log_info("Saved checkpoint at global step " + std::to_string(shared->step) + " in " +
               options_.train_dir.string());
    }
  }

  // nullopt: some ps is gone, does not have it, or is at another step.
  std::optional<TrainingState> collect(const Job& job) {
    TrainingState state;
    state.parameters = math::AlignedVector(layout_.size());
    for (const std::string& name : tensor_names_) {
      state.optimizer.push_back({.name = name, .values = math::AlignedVector(layout_.size())});
    }
    for (std::size_t index = 0; index < task_.cluster.ps.size(); ++index) {
      std::uint64_t step = 0;
      if (collect_range(job, index, state, step)) {
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

  std::error_code collect_range(const Job& job, std::size_t index, TrainingState& state,
                                std::uint64_t& step) {
    const net::TaskId ps{.job = net::Job::kPs, .index = index};
    const math::Range range = math::shard_range(layout_.size(), index, task_.cluster.ps.size());
    const std::size_t bytes = (1 + tensor_names_.size()) * range.size() * sizeof(float);
    const auto deadline =
        std::min(job.deadline, net::Clock::now() + task_.timeouts.silence +
                                   std::chrono::seconds(bytes / kSlowestBytesPerSecond));
    auto opened = net::open_channel(task_.cluster.address_of(ps),
                                    {.cluster = net::hash_of(task_.cluster),
                                     .from = task_.self,
                                     .to = ps,
                                     .purpose = net::ChannelPurpose::kState,
                                     .incarnation = task_.incarnation},
                                    interrupt_, deadline);
    if (opened.error) {
      return opened.error;
    }
    net::Channel& channel = *opened.channel;
    FrameHeader header{.kind = FrameKind::kGetCut,
                       .flags = job.now ? std::uint16_t{net::kFlagCut} : std::uint16_t{0},
                       .sequence = job.sequence,
                       .generation = job.generation};
    std::error_code error = channel.send(header, {}, deadline);
    if (!error) {
      error = channel.receive_header(header, deadline);
    }
    if (error) {
      return error;
    }
    if (header.kind != FrameKind::kCut || header.body_size != bytes ||
        header.range_begin != range.begin) {
      channel.close();
      return net::WireError::kUnexpected;  // kAck: it does not have it
    }
    step = header.step;
    const auto receive = [&](math::AlignedVector& whole) {
      const auto place = whole.span().subspan(range.begin, range.size());
      return channel.receive_body(std::as_writable_bytes(place), deadline);
    };
    error = receive(state.parameters);
    for (auto tensor = state.optimizer.begin(); !error && tensor != state.optimizer.end();
         ++tensor) {
      error = receive(tensor->values);
    }
    return error;
  }

  // Constant.
  const Task& task_;
  const CheckpointOptions& options_;
  const RunConfig config_;
  const std::string config_json_;
  const math::ParameterLayout& layout_;
  const CheckpointDirectory directory_;
  std::vector<std::string> tensor_names_;  // of the optimizer's state
  // The computing thread's.
  bool due_ = false;
  net::Deadline next_time_;
  // Shared by both threads.
  std::mutex mutex_;
  std::condition_variable wake_;
  std::optional<Job> job_;  // under way or about to be
  bool stopping_ = false;
  std::shared_ptr<const TrainingState> newest_;

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

}  // namespace disttf::roles
