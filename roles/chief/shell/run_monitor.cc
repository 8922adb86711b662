#include "roles/chief/shell/run_monitor.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <span>
#include <thread>
#include <utility>

#include "roles/chief/shell/program_notes.h"
#include "run/config_json.h"
#include "run/monitor/core/task_metrics.h"
#include "run/monitor/core/trace_collector.h"
#include "run/monitor/shell/process_facts.h"
#include "run/monitor/shell/telemetry_files.h"
#include "run/process/log.h"
#include "run/process/start_thread.h"

namespace disttf::roles {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// The interval at which training progress is read.
constexpr milliseconds kMonitorLook{250};
// How many of these intervals pass between two critical paths.
constexpr int kLooksOfCriticalPath = 4;
// The time that a reader of a full pipe gets.
constexpr milliseconds kReaderHas{200};
// The most records that wait to be written; beyond that the oldest are dropped.
constexpr std::size_t kMostRecordsWaiting = 4096;
// How many critical paths in a row must name the same task and stage before it is logged; and how
// many pass before it is logged again.
constexpr int kNamedFor = 5;
constexpr int kNamedAgain = 60;

struct Line {
  std::string text;
  std::string series;  // the series of repeated records; empty: not one
  double time = 0;
};

// Steps between two readings, evenly spread, always including the first one: at most kMost, and at
// most kMostOfRun in the whole run. Adding one allocates for numbers only.
class EarlySteps {
 public:
  struct Step {
    std::uint64_t number = 0;
    double loss = 0;
    math::ToldNumbers numbers{};
  };

  void add(std::uint64_t number, double loss, const math::ToldNumbers& numbers) {
    // Bounded for the whole run: later curves need no single steps.
    if (taken_ >= kMostOfRun || seen_++ % stride_ != 0) {
      return;
    }
    if (count_ == kMost) {
      // Drops every other step, so that the rest stays evenly spread.
      for (std::size_t each = 0; each < kMost / 2; ++each) {
        steps_[each] = std::move(steps_[2 * each]);
      }
      count_ = kMost / 2;
      stride_ *= 2;
    }
    steps_[count_++] = {.number = number, .loss = loss, .numbers = numbers};
  }
  [[nodiscard]] std::span<const Step> steps() const noexcept {
    return std::span(steps_).first(count_);
  }
  // The steps have been taken.
  void clear() noexcept {
    taken_ += count_;
    count_ = 0;
    seen_ = 0;
    stride_ = 1;
  }

 private:
  static constexpr std::size_t kMost = 32;
  static constexpr std::size_t kMostOfRun = 200;

  std::array<Step, kMost> steps_{};
  std::size_t count_ = 0;
  std::uint64_t seen_ = 0;
  std::uint64_t stride_ = 1;
  std::size_t taken_ = 0;
};

}  // namespace

class RunMonitor::Impl {
 public:
  Impl(const Task& task, const RunConfig& config, const Options& options)
      : task_(task),
        config_(config),
        options_(options),
        fd_(options.progress_fd),
        schedule_(config.rate_schedule()),
        critical_path_(task.cluster.trainer_count(), task.cluster.ps.size(), config.sync_replicas),
        traces_(task.cluster, config.train_steps),
        present_(task.cluster.trainer_count(), false),
        programs_(net::task_name(task.self), options.fingerprint) {
    if (!options.train_dir.empty()) {
      const ProcessFacts facts = process_facts();
      file_.emplace(options.train_dir, fmt::format("{}-{}", facts.host, facts.pid));
    }
    // Last: the thread uses everything above.
    thread_ = start_thread([this] { work(); });
  }

  ~Impl() {
    {
      const std::scoped_lock lock(mutex_);
      is_ending_ = true;
    }
    // Ends the pause, so that the last records are written at once.
    wake_.notify_one();
    thread_.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void add(std::string text, std::string series = {}) {
    const std::scoped_lock lock(mutex_);
    put({.text = std::move(text), .series = std::move(series), .time = record_time()});
  }

  void made(std::uint64_t step, double loss, std::span<const math::ToldNumber> numbers) {
    // This is all that a step costs the computing thread.
    const std::scoped_lock lock(mutex_);
    step_ = step;
    loss_ = loss;
    numbers_.assign(numbers.begin(), numbers.end());
    early_.add(step, loss, numbers_);
  }

  void begins(const RunRecord& run) {
    const std::scoped_lock lock(mutex_);
    const double time = record_time();
    put({.text = run.to_line(time), .series = {}, .time = time});
    step_ = shown_ = run.step;
    looked_at_ = time;
    early_ = {};
    // The rate of the steps before a rollback says nothing about those after it.
    rated_at_ = {};
    roll_back();
  }

  void told(std::size_t index, const std::vector<std::string>& texts) {
    const double time = record_time();
    const std::scoped_lock lock(mutex_);
    for (const std::string& text : texts) {
      // A text of an unknown kind, such as that of a newer version, is ignored.
      if (const auto ps = ps_metrics_from_json(text)) {
        record_ps(index, *ps, time);
      } else if (const auto trainer = trainer_metrics_from_json(text)) {
        record_trainer(*trainer, time);
      }
    }
  }

 private:
  // All of these require the mutex.

  void roll_back() {
    critical_path_.roll_back();
    traces_.roll_back();
  }

  void put(Line line) {
    lines_.push_back(std::move(line));
    if (lines_.size() > kMostRecordsWaiting) {
      // The oldest go first: the page and the file show the newest state of the run.
      lines_.pop_front();
    }
  }
  void put_event(double time, const EventRecord& event) {
    put({.text = event.to_line(time), .series = {}, .time = time});
  }

  void record_ps(std::size_t index, const PsMetrics& ps, double time) {
    // The text comes from another machine, and may name any task.
    if (ps.task != net::TaskId{.job = net::Job::kPs, .index = index} ||
        index >= task_.cluster.ps.size()) {
      return;
    }
    critical_path_.record_ps(index, ps.samples);
    traces_.told(ps);
    put({.text = to_line(ps, time), .series = "metrics " + task_name(ps.task), .time = time});
    // One ps suffices: a trainer is connected to all of them.
    if (index == 0) {
      note_present(ps.present, time);
      traces_.record_present(ps.present);
    }
    if (ps.generation > generation_) {
      // The first generation is the run's start and no rollback.
      if (generation_ != 0) {
        put_event(time, {.level = EventRecord::Level::kWarning,
                         .task = {},
                         .what = "set_back",
                         .text = fmt::format("The ps were rolled back to the state of step {}",
                                             ps.step)});
        roll_back();
      }
      generation_ = ps.generation;
    }
  }

  void note_present(const std::vector<bool>& present, double time) {
    for (std::size_t rank = 0; rank < std::min(present.size(), present_.size()); ++rank) {
      if (present[rank] == present_[rank]) {
        continue;
      }
      present_[rank] = present[rank];
      const std::string name = net::task_name(task_.cluster.trainer(rank));
      put_event(time,
                {.level = present[rank] ? EventRecord::Level::kInfo : EventRecord::Level::kWarning,
                 .task = name,
                 .what = present[rank] ? "joined" : "lost",
                 .text = name + (present[rank] ? " joined" : " is disconnected")});
    }
  }

  void record_trainer(const TrainerMetrics& trainer, double time) {
    // The text comes from another machine, and may name any task.
    const bool is_trainer =
        trainer.task.job == net::Job::kChief || trainer.task.job == net::Job::kWorker;
    const auto& list =
        trainer.task.job == net::Job::kChief ? task_.cluster.chief : task_.cluster.workers;
    if (!is_trainer || trainer.task.index >= list.size()) {
      return;
    }
    critical_path_.record_trainer(task_.cluster.rank_of(trainer.task), trainer.samples);
    traces_.told(trainer);
    for (const EventRecord& event : programs_.told(task_.cluster.rank_of(trainer.task), trainer)) {
      if (ProgramNotes::should_log(event)) {
        log_warning(event.text);
      }
      put_event(time, event);
    }
    put({.text = to_line(trainer, time, config_.model.is_program()),
         .series = "metrics " + task_name(trainer.task),
         .time = time});
  }

  void look(bool with_critical_path) {
    const double time = record_time();
    if (step_ != shown_) {
      put_steps(time);
    }
    looked_at_ = time;
    if (!with_critical_path) {
      return;
    }
    if (const std::optional<CriticalPath> critical_path = critical_path_.take()) {
      put({.text = critical_path_line(*critical_path, task_.cluster, time),
           .series = "frontier",
           .time = time});
      name_slowest(critical_path->slowest);
    }
  }

  // Records several of the first steps, so that the curves of a short run begin at its first step.
  void put_steps(double time) {
    const std::span<const EarlySteps::Step> early = early_.steps();
    for (std::size_t each = 0; each < early.size(); ++each) {
      // The times of these steps were not recorded, so they are spread evenly over the interval.
      const double share = static_cast<double>(each + 1) / static_cast<double>(early.size() + 1);
      if (early[each].number < step_) {
        put_step_of(early[each].number, early[each].loss, early[each].numbers,
                    looked_at_ == 0 ? time : looked_at_ + share * (time - looked_at_), {});
      }
    }
    early_.clear();
    put_step(time);
  }

  void put_step(double time) {
    const auto now = Clock::now();
    // A first reading, or one after a rollback, gives no rate yet.
    if (rated_at_ == Clock::time_point{} || step_ < rated_step_) {
      rated_at_ = now;
      rated_step_ = step_;
    } else if (const std::chrono::duration<double> passed = now - rated_at_; passed.count() >= 1) {
      // Over at least a second: shorter intervals give rates that jump.
      rate_ = static_cast<double>((step_ - rated_step_) * config_.rows_per_step()) / passed.count();
      rated_at_ = now;
      rated_step_ = step_;
    }
    shown_ = step_;
    put_step_of(step_, loss_, numbers_, time, "step");
  }

  void put_step_of(std::uint64_t number, double loss, const math::ToldNumbers& numbers, double time,
                   std::string series) {
    const StepRecord step{.step = number,
                          .loss = loss,
                          .learning_rate = short_number(
                              config_.optimizer.learning_rate *
                              math::rate_factor(schedule_, std::max<std::uint64_t>(number, 1) - 1)),
                          .images = number * config_.rows_per_step(),
                          .images_per_second = rate_,
                          .numbers = numbers};
    put({.text = step.to_line(time), .series = std::move(series), .time = time});
  }

  // Logs a task that has been slow for a while.
  void name_slowest(const std::optional<CriticalPath::Slowest>& slowest) {
    const std::string who = slowest ? fmt::format("{}{}{}", slowest->is_ps, slowest->index,
                                                  static_cast<int>(slowest->stage))
                                    : std::string();
    // A finding must repeat before it is logged: single steps vary.
    named_ = who.empty() || who != who_ ? 0 : named_ + 1;
    who_ = who;
    // Counted down in any case, so that an alternating finding is not logged each time.
    --silent_;
    if (named_ >= kNamedFor && silent_ <= 0) {
      to_log_ = slowest_text(*slowest, task_.cluster);
      silent_ = kNamedAgain;
    }
  }

  // ---- the thread

  void work() {
    std::unique_lock lock(mutex_);
    for (int looks = 1;; ++looks) {
      wake_.wait_for(lock, kMonitorLook, [this] { return is_ending_; });
      look(looks % kLooksOfCriticalPath == 0);
      const std::optional<TraceCollector::Result> trace = look_at_traces();
      // Read under the mutex, passed on without it.
      const StepWindow window = traces_.window();
      // Taken out, so that the mutex is not held while they are written.
      std::deque<Line> lines = std::exchange(lines_, {});
      const std::string to_log = std::exchange(to_log_, {});
      const bool is_last = is_ending_;
      lock.unlock();
      write(lines);
      // At the end no task listens any more.
      if (window != std::exchange(traced_, window) && options_.trace && !is_last) {
        options_.trace(window);
      }
      if (trace) {
        finish(*trace);
      }
      if (!to_log.empty()) {
        log_info(to_log);
      }
      if (is_last) {
        return;
      }
      lock.lock();
    }
  }

  // Requires the mutex.
  std::optional<TraceCollector::Result> look_at_traces() {
    if (is_ending_) {
      return traces_.end();
    }
    if (options_.take_trace_request) {
      if (const std::uint32_t steps = options_.take_trace_request(); steps != 0) {
        traces_.ask(steps);
      }
    }
    return traces_.look(step_, Clock::now());
  }

  // Called without the mutex: it writes a file.
  void finish(const TraceCollector::Result& result) {
    TraceRecord record{.file = {}, .why_not = result.why_not};
    if (result.trace) {
      record = write_trace(*result.trace, options_.train_dir);
    }
    const bool is_there = !record.file.empty();
    const std::string sentence = is_there
                                     ? fmt::format("A timeline of {} steps from {} on is in {}",
                                                   record.steps, record.from, record.file)
                                     : "No timeline: " + record.why_not;
    is_there ? log_info(sentence) : log_warning(sentence);
    const double time = record_time();
    const EventRecord event{
        .level = is_there ? EventRecord::Level::kInfo : EventRecord::Level::kWarning,
        .task = {},
        .what = "timeline",
        .text = sentence};
    write({Line{.text = record.to_line(time), .series = {}, .time = time},
           Line{.text = event.to_line(time), .series = {}, .time = time}});
  }

  void write(const std::deque<Line>& lines) {
    for (const Line& line : lines) {
      if (line.text.empty()) {
        continue;
      }
      if (options_.also) {
        options_.also(line.text);
      }
      if (fd_ >= 0) {
        write_to_pipe(line.text + "\n");
      }
      if (file_) {
        file_->write(line.text, line.series, line.time);
      }
    }
  }

  // Writes a whole record or nothing: up to kMaxRecordBytes are atomic in a pipe, and this one does
  // not block. The computing thread writes to it, too.
  void write_to_pipe(const std::string& text) {
    if (::write(fd_, text.data(), text.size()) >= 0) {
      return;
    }
    if (errno == EPIPE) {
      // The reader has closed the pipe.
      fd_ = -1;
    } else if (errno == EAGAIN) {
      // One more attempt: a record is dropped rather than waited for any longer.
      pollfd room{.fd = fd_, .events = POLLOUT, .revents = 0};
      ::poll(&room, 1, static_cast<int>(kReaderHas.count()));
      // A failure of the second attempt drops the record.
      static_cast<void>(::write(fd_, text.data(), text.size()) >= 0);
    }
  }

  const Task& task_;
  const RunConfig config_;
  // Of the thread.
  const Options options_;
  int fd_;
  StepWindow traced_;  // the window that all have received
  std::optional<RecordFile> file_;

  std::mutex mutex_;  // guards all below
  std::condition_variable wake_;
  bool is_ending_ = false;
  std::deque<Line> lines_;
  math::RateSchedule schedule_;
  std::uint64_t step_ = 0;
  double loss_ = 0;
  math::ToldNumbers numbers_;
  std::uint64_t shown_ = 0;  // the step of the newest step record
  double looked_at_ = 0;     // 0: not yet
  EarlySteps early_;
  Clock::time_point rated_at_{};
  std::uint64_t rated_step_ = 0;
  double rate_ = 0;  // images a second
  CriticalPathFinder critical_path_;
  TraceCollector traces_;
  std::uint64_t generation_ = 0;
  std::vector<bool> present_;  // by rank
  std::string who_;            // the slowest task of the newest critical path
  int named_ = 0;              // critical paths in a row
  int silent_ = 0;             // critical paths until one is logged again
  std::string to_log_;
  ProgramNotes programs_;
  std::thread thread_;
};

RunMonitor::RunMonitor(const Task& task, const RunConfig& config, const Options& options)
    : impl_(std::make_unique<Impl>(task, config, options)) {}
RunMonitor::~RunMonitor() = default;

void RunMonitor::begins(const RunRecord& run) { impl_->begins(run); }

void RunMonitor::made(std::uint64_t step, double loss, std::span<const math::ToldNumber> numbers) {
  impl_->made(step, loss, numbers);
}

void RunMonitor::evaluated(std::uint64_t step, const math::Evaluation& validation,
                           const math::Evaluation& test, bool is_last) {
  const double time = record_time();
  impl_->add(EvaluationRecord{.step = step,
                              .is_last = is_last,
                              .validation = &validation,
                              .test = test.is_told ? nullptr : &test}  // a program evaluates once
                 .to_line(time));
  for (std::string& line : confusion_lines(test, step, time)) {
    impl_->add(std::move(line));
  }
}

void RunMonitor::add(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    impl_->add(line);
  }
}

void RunMonitor::saved(const CheckpointRecord& checkpoint) {
  impl_->add(checkpoint.to_line(record_time()));
}

void RunMonitor::ended(const ResultRecord& result) { impl_->add(result.to_line(record_time())); }

void RunMonitor::told(std::size_t index, const std::vector<std::string>& texts) {
  impl_->told(index, texts);
}

}  // namespace disttf::roles
