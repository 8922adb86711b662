#include "roles/chief/shell/summaries.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>

#include "math/rate_schedule.h"
#include "roles/chief/shell/summary_writer.h"
#include "run/process/log.h"
#include "run/process/start_thread.h"

namespace disttf::roles {
namespace {

struct Begin {
  data::EventTime time;
};
struct End {
  double wall_time = 0;
  bool is_success = false;
};
using Job = std::variant<std::monostate, Begin, StepSummary, HistogramSummary,
                         std::unique_ptr<EvaluationSummary>, ProjectorSummary, End>;

// A queue with one producer and one consumer. It holds the steps of a second and more at
// --summary_every 1.
class JobQueue {
 public:
  // Returns false if it is full; `job` is unchanged then.
  bool put(Job&& job) {
    const std::size_t end = end_.load(std::memory_order_relaxed);
    if (end - begin_.load(std::memory_order_acquire) == jobs_.size()) {
      return false;
    }
    jobs_[end % jobs_.size()] = std::move(job);
    // Released last: a consumer that sees the new end also sees the job.
    end_.store(end + 1, std::memory_order_release);
    return true;
  }
  bool take(Job& job) {
    const std::size_t begin = begin_.load(std::memory_order_relaxed);
    if (begin == end_.load(std::memory_order_acquire)) {
      return false;
    }
    // The slot is emptied, since a job may hold large vectors.
    job = std::exchange(jobs_[begin % jobs_.size()], Job());
    begin_.store(begin + 1, std::memory_order_release);
    return true;
  }

 private:
  std::array<Job, 1024> jobs_;
  std::atomic<std::size_t> begin_ = 0;  // counts up; the first job not taken out
  std::atomic<std::size_t> end_ = 0;
};

// The most copies of weights that wait to become histograms: more would use unbounded memory.
constexpr int kMostWaitingCopies = 2;

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

math::AlignedVector copy_of(std::span<const float> values) {
  math::AlignedVector copy(values.size());
  std::copy(values.begin(), values.end(), copy.data());
  return copy;
}

}  // namespace

class Summaries::Impl {
 public:
  Impl(const SummaryOptions& options, const RunConfig& config, const math::ParameterLayout& layout,
       const data::Dataset& dataset, std::size_t ps)
      : options_(options),
        config_(config),
        writer_(options.directory, config, layout, dataset, ps) {
    if (options.histogram_every != 0) {
      // Allocated once: a step must not allocate the memory of two models.
      spare_.parameters = math::AlignedVector(layout.size());
      spare_.gradient = math::AlignedVector(layout.size());
    }
    thread_ = start_thread([this] { work(); });
  }

  ~Impl() {
    // Jobs that are in the queue by now are still carried out, see work().
    stopping_.store(true, std::memory_order_release);
    wake();
    thread_.join();
    if (dropped_ != 0) {
      log_warning("--log_dir: the disk was too slow for " + std::to_string(dropped_) +
                  " summaries, which were left out");
    }
  }

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void goes_on_from(std::uint64_t step, std::uint64_t first) {
    // Events of later steps are invalid only if the state is older.
    if (has_begun_ && step >= step_) {
      return;
    }
    has_begun_ = true;
    is_told_ = false;
    first_ = first;
    step_ = step;
    has_gradient_ = false;
    rate_step_ = step;
    rate_time_ = std::chrono::steady_clock::now();
    is_first_step_ = true;
    tell_beginning();
  }

  void made(const MadeStep& made) {
    const bool has_scalars = options_.every != 0 &&
                             (is_first_step_ || made.is_last || is_due(options_.every, made.step));
    const bool has_histograms =
        options_.histogram_every != 0 && is_due(options_.histogram_every, made.step);
    if (has_scalars) {
      put(step_summary(made));
    }
    if (has_histograms) {
      put_histograms(made);
    } else if (made.is_last) {  // it is overwritten before the evaluation
      put_last_gradient(made);
    }
    has_gradient_ = !made.is_last;
    is_first_step_ = false;
    step_ = made.step;
  }

  void evaluated(std::uint64_t step, const math::Evaluation& validation,
                 const math::Evaluation& test, std::span<const float> parameters,
                 std::span<const float> gradient, bool is_last) {
    goes_on_from(step, step);
    auto evaluation = std::make_unique<EvaluationSummary>();
    evaluation->time = {.wall_time = wall_time(), .step = step};
    evaluation->is_last = is_last;
    evaluation->validation = validation;
    evaluation->test = test;
    // At most one set of histograms for each step and tag.
    const bool has_histograms = histogram_step_ == step;
    evaluation->has_weights = !has_histograms;
    if (is_last || waiting_.load(std::memory_order_acquire) < kMostWaitingCopies) {
      try {
        evaluation->parameters = copy_of(parameters);
        if (has_gradient_ && !has_histograms && !is_last) {
          evaluation->gradient = copy_of(gradient);
        }
      } catch (const std::bad_alloc&) {
        evaluation->parameters = {};
        ++dropped_;
      }
    } else {
      ++dropped_;
    }
    // Before put(), since the other thread subtracts as soon as it takes the job.
    waiting_.fetch_add(1, std::memory_order_relaxed);
    if (!put(std::move(evaluation))) {
      waiting_.fetch_sub(1, std::memory_order_relaxed);
    }
  }

  bool put(Job&& job) {
    // Nothing may be written before the beginning that it belongs to.
    tell_beginning();
    const bool is_put = is_told_ && queue_.put(std::move(job));
    // Dropped and counted: training must not wait for the disk.
    dropped_ += is_put ? 0 : 1;
    wake();
    return is_put;
  }

 private:
  // Returns whether one of the steps from the last one to `step` is a multiple.
  [[nodiscard]] bool is_due(std::uint64_t every, std::uint64_t step) const noexcept {
    return step / every != step_ / every;
  }

  void tell_beginning() {
    if (!is_told_) {
      is_told_ = queue_.put(Begin{.time = {.wall_time = wall_time(), .step = first_}});
      wake();
    }
  }

  [[nodiscard]] StepSummary step_summary(const MadeStep& made) {
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - rate_time_).count();
    const std::uint64_t images = (made.step - rate_step_) * config_.rows_per_step();
    StepSummary step{.time = {.wall_time = wall_time(), .step = made.step},
                     .loss = made.loss,
                     .learning_rate = learning_rate_of(made.step),
                     .images_per_second = seconds > 0 ? static_cast<double>(images) / seconds : 0,
                     .numbers = {made.numbers.begin(), made.numbers.end()}};
    // Async: the updates of others between this trainer's pull and its push.
    if (!config_.sync_replicas && made.step > step_) {
      step.staleness = static_cast<double>(made.step - step_ - 1);
    }
    rate_time_ = now;
    rate_step_ = made.step;
    return step;
  }

  // Of the update that led to the state of `step`.
  [[nodiscard]] float learning_rate_of(std::uint64_t step) const noexcept {
    const std::uint64_t before = std::min(step, config_.train_steps) - 1;
    return config_.optimizer.learning_rate * math::rate_factor(config_.rate_schedule(), before);
  }

  // There is memory for one copy. It goes to the other thread, and comes back when it has been
  // used.
  void put_histograms(const MadeStep& made) {
    if (!is_spare_here_.load(std::memory_order_acquire)) {
      ++dropped_;
      return;
    }
    spare_.time = {.wall_time = wall_time(), .step = made.step};
    std::copy(made.parameters.begin(), made.parameters.end(), spare_.parameters.data());
    std::copy(made.gradient.begin(), made.gradient.end(), spare_.gradient.data());
    // Before put(), since the other thread may return the copy at once.
    is_spare_here_.store(false, std::memory_order_relaxed);
    Job job(std::move(spare_));
    if (put(std::move(job))) {
      histogram_step_ = made.step;
    } else {  // put() left it unchanged
      spare_ = std::move(std::get<HistogramSummary>(job));
      is_spare_here_.store(true, std::memory_order_relaxed);
    }
  }

  void put_last_gradient(const MadeStep& made) {
    try {
      put(HistogramSummary{.time = {.wall_time = wall_time(), .step = made.step},
                           .parameters = {},
                           .gradient = copy_of(made.gradient)});
    } catch (const std::bad_alloc&) {
      ++dropped_;
    }
  }

  void wake() {
    // Counted up, so that a wake-up between load and wait() is not lost.
    bell_.fetch_add(1, std::memory_order_release);
    bell_.notify_one();
  }

  void work() {
    Job job;
    while (true) {
      // Read before the queue: a wake-up between the two is then noticed by wait().
      const std::uint32_t heard = bell_.load(std::memory_order_acquire);
      // Read before the queue is emptied, so that jobs that were put before the stop are carried
      // out.
      const bool stops = stopping_.load(std::memory_order_acquire);
      while (queue_.take(job)) {
        try {
          std::visit([this](auto& each) { carry_out(each); }, job);
        } catch (const std::exception& error) {
          log_warning(std::string("--log_dir: ") + error.what());
        }
      }
      if (stops) {
        return;
      }
      bell_.wait(heard, std::memory_order_acquire);
    }
  }

  void carry_out(std::monostate /*nothing*/) {}
  void carry_out(const Begin& begin) { writer_.begin(begin.time); }
  void carry_out(const StepSummary& step) { writer_.write(step); }
  void carry_out(HistogramSummary& histograms) {
    writer_.write(histograms);
    if (histograms.parameters.size() != 0) {  // else it is the last gradient
      spare_ = std::move(histograms);
      is_spare_here_.store(true, std::memory_order_release);
    }
  }
  void carry_out(const std::unique_ptr<EvaluationSummary>& evaluation) {
    // Counted as done when its turn comes: from here on the queue holds no copy of it.
    waiting_.fetch_sub(1, std::memory_order_release);
    writer_.write(*evaluation);
  }
  void carry_out(const ProjectorSummary& projector) { writer_.write(projector); }
  void carry_out(const End& end) { writer_.end(end.wall_time, end.is_success); }

  // Constant.
  const SummaryOptions& options_;
  const RunConfig& config_;
  // Of the computing thread.
  bool has_begun_ = false;
  bool is_told_ = true;      // the other thread has received the last beginning
  std::uint64_t first_ = 0;  // the first step written since then
  std::uint64_t step_ = 0;   // of the state that the next step starts from
  bool is_first_step_ = true;
  bool has_gradient_ = false;
  std::optional<std::uint64_t> histogram_step_;  // the newest step that has histograms
  std::uint64_t rate_step_ = 0;  // the step up to which images were counted, at rate_time_
  std::chrono::steady_clock::time_point rate_time_;
  std::uint64_t dropped_ = 0;
  // Of the other thread.
  SummaryWriter writer_;
  // Of both threads.
  JobQueue queue_;
  HistogramSummary spare_;  // is_spare_here_ says which thread owns it
  std::atomic<bool> is_spare_here_ = true;
  std::atomic<int> waiting_ = 0;         // evaluations
  std::atomic<std::uint32_t> bell_ = 0;  // changes when there is something to do
  std::atomic<bool> stopping_ = false;

  std::thread thread_;
};

Summaries::Summaries(const SummaryOptions& options, const RunConfig& config,
                     const math::ParameterLayout& layout, const data::Dataset& dataset,
                     std::size_t ps)
    : impl_(std::make_unique<Impl>(options, config, layout, dataset, ps)) {}
Summaries::~Summaries() = default;

void Summaries::goes_on_from(std::uint64_t step) { impl_->goes_on_from(step, step + 1); }

void Summaries::made(const MadeStep& made) { impl_->made(made); }

void Summaries::evaluated(std::uint64_t step, const math::Evaluation& validation,
                          const math::Evaluation& test, std::span<const float> parameters,
                          std::span<const float> gradient, bool is_last) {
  impl_->evaluated(step, validation, test, parameters, gradient, is_last);
}

void Summaries::project(std::vector<float> points, std::size_t width,
                        std::vector<std::uint16_t> judged) {
  impl_->put(
      ProjectorSummary{.width = width, .points = std::move(points), .judged = std::move(judged)});
}

void Summaries::ended(bool is_success) {
  impl_->put(End{.wall_time = wall_time(), .is_success = is_success});
}

}  // namespace disttf::roles
