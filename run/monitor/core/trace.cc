#include "run/monitor/core/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <string_view>
#include <utility>

namespace disttf::roles {
namespace {

// An event is about 100 bytes of text.
constexpr std::uint64_t kMostEvents = 1'000'000;
// The largest difference of two clocks; nanoseconds, a hundred years.
constexpr std::int64_t kFarthest = 3'000'000'000'000'000'000;
// Events of a trainer's step: the step and its stages.
constexpr std::uint64_t kOfAStep = kStages + 1;
// Events of a trainer's step with a ps: gradient, parameters, and the three points of an arrow.
constexpr std::uint64_t kOfAnExchange = 5;

std::int64_t in_ns(float seconds) { return std::llround(static_cast<double>(seconds) * 1e9); }

// In the order of a step.
constexpr std::array kInOrder = {Stage::kPull,     Stage::kLoad, Stage::kForward,
                                 Stage::kBackward, Stage::kPush, Stage::kOverlapped,
                                 Stage::kWait};

std::string_view name_of(Stage stage) {
  return stage == Stage::kOverlapped ? "load the next batch"
                                     : kStageNames[static_cast<std::size_t>(stage)];
}

// The end of a step's slices, on the reporting task's clock: the beginning of the next step. Times
// are reported as float32, so the sum of long ones may exceed it by some nanoseconds.
template <typename Sample>
std::int64_t ends_by(const std::vector<Sample>& steps, const Sample& step) {
  const auto next = std::ranges::find(steps, step.step + 1, &Sample::step);
  return next == steps.end() ? kFarthest : std::max(next->began, step.began);
}

// The time from the beginning of the step to the end of `last`.
std::int64_t until(const TrainerSample& sample, Stage last) {
  std::int64_t time = 0;
  for (const Stage stage : kInOrder) {
    time += in_ns(sample.of(stage));
    if (stage == last) {
      break;
    }
  }
  return time;
}

}  // namespace

// Writes the events, one per line. Times are nanoseconds; the format has microseconds.
class Trace::Writer {
 public:
  enum class Flow : char { kBegins = 's', kGoesOn = 't', kEnds = 'f' };

  explicit Writer(std::int64_t zero) : zero_(zero) {}

  // The names are made by disttf, so nothing in them needs an escape.
  void name(const char* what, std::size_t process, std::size_t thread, std::string_view name) {
    begin();
    fmt::format_to(to_, R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":"{}"}}}})",
                   what, process, thread, name);
  }
  void order(std::size_t process) {
    begin();
    fmt::format_to(
        to_,
        R"({{"ph":"M","name":"process_sort_index","pid":{0},"tid":0,"args":{{"sort_index":{0}}}}})",
        process);
  }
  void slice(std::size_t process, std::size_t thread, std::string_view category,
             std::string_view name, std::int64_t from, std::int64_t until, std::uint64_t step) {
    begin();
    fmt::format_to(
        to_,
        R"({{"ph":"X","cat":"{}","name":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{"step":{}}}}})",
        category, name, process, thread, text(from - zero_),
        text(std::max<std::int64_t>(until - from, 0)), step);
  }
  void flow(Flow kind, std::uint64_t id, std::size_t process, std::int64_t at) {
    begin();
    fmt::format_to(to_,
                   R"({{"ph":"{}","cat":"flow","name":"step","id":{},"pid":{},"tid":0,"ts":{}{}}})",
                   static_cast<char>(kind), id, process, text(at - zero_),
                   // The arrow ends at the slice around this time, and not at the next one.
                   kind == Flow::kEnds ? R"(,"bp":"e")" : "");
  }
  [[nodiscard]] std::string take() && { return std::move(text_); }

 private:
  void begin() { text_ += text_.empty() ? "\n" : ",\n"; }
  // Exact; a double of microseconds since a machine's start would not be.
  static std::string text(std::int64_t nanoseconds) {
    const std::int64_t size = std::abs(nanoseconds);
    return fmt::format("{}{}.{:03}", nanoseconds < 0 ? "-" : "", size / 1000, size % 1000);
  }

  const std::int64_t zero_;
  std::string text_;
  std::back_insert_iterator<std::string> to_{text_};
};

std::uint64_t Trace::most_steps(std::size_t trainers, std::size_t ps) noexcept {
  // 3: the step, the wait and the update of a ps.
  const std::uint64_t of_a_step = trainers * (kOfAStep + ps * kOfAnExchange) + ps * 3;
  return std::clamp<std::uint64_t>(kMostEvents / std::max<std::uint64_t>(of_a_step, 1), 1,
                                   StepWindow::kMost);
}

Trace::Trace(const net::Cluster& cluster, const StepWindow& window)
    : cluster_(&cluster),
      window_(window),
      trainers_(cluster.trainer_count()),
      ps_(cluster.ps.size()) {}

template <typename Metrics, typename Sample>
void Trace::take(const Metrics& metrics, ReportedSamples<Sample>& told) {
  for (const Sample& sample : metrics.traced) {
    // The count bounds what a task that reports a step twice can add.
    if (window_.has(sample.step) && told.steps.size() < window_.count) {
      told.steps.push_back(sample);
    }
  }
  if (!metrics.traced.empty()) {
    told.clock = metrics.process.clock;
  }
  // The task is beyond the window and has no more steps to send.
  told.is_complete =
      told.is_complete || (metrics.step >= window_.end() && !metrics.has_more_traced);
}

void Trace::told(const TrainerMetrics& metrics) {
  take(metrics, trainers_[cluster_->rank_of(metrics.task)]);
}

void Trace::told(const PsMetrics& metrics) { take(metrics, ps_[metrics.task.index]); }

void Trace::record_present(const std::vector<bool>& present) {
  took_part_.resize(trainers_.size());
  for (std::size_t rank = 0; rank < std::min(present.size(), took_part_.size()); ++rank) {
    // Once is enough: a trainer that left in the middle has reported a part.
    took_part_[rank] = took_part_[rank] || present[rank];
  }
}

bool Trace::is_awaited(std::size_t rank) const noexcept {
  return !trainers_[rank].is_complete &&
         (took_part_.empty() || took_part_[rank] || !trainers_[rank].steps.empty());
}

bool Trace::is_complete() const noexcept {
  for (std::size_t rank = 0; rank < trainers_.size(); ++rank) {
    if (is_awaited(rank)) {
      return false;
    }
  }
  return std::ranges::all_of(ps_, [](const auto& told) { return told.is_complete; });
}

std::vector<std::string> Trace::missing() const {
  std::vector<std::string> names;
  for (std::size_t index = 0; index < ps_.size(); ++index) {
    if (!ps_[index].is_complete) {
      names.push_back(net::task_name({.job = net::Job::kPs, .index = index}));
    }
  }
  for (std::size_t rank = 0; rank < trainers_.size(); ++rank) {
    if (is_awaited(rank)) {
      names.push_back(net::task_name(cluster_->trainer(rank)));
    }
  }
  return names;
}

bool Trace::empty() const noexcept {
  const auto is_empty = [](const auto& told) { return told.steps.empty(); };
  return std::ranges::all_of(trainers_, is_empty) && std::ranges::all_of(ps_, is_empty);
}

const TrainerSample* Trace::step_of(std::size_t rank, std::uint64_t step) const {
  const auto& steps = trainers_[rank].steps;
  const auto found = std::ranges::find(steps, step, &TrainerSample::step);
  return found == steps.end() ? nullptr : &*found;
}

// ------------------------------------------------------------------------------------------ clocks

// The best path of clock differences to each task, starting at ps 0, over shared clocks and
// exchanged steps. A task that does not know its clock's name shares it with none.
std::vector<Trace::Offset> Trace::offsets() const {
  const std::size_t tasks = ps_.size() + trainers_.size();
  const auto clock_of = [&](std::size_t task) -> const std::string& {
    return task < ps_.size() ? ps_[task].clock : trainers_[task - ps_.size()].clock;
  };
  // The tasks of one machine share its monotonic clock, so between them there is no error.
  const auto same = [&](std::size_t one, std::size_t other) {
    return one == other || (!clock_of(one).empty() && clock_of(one) == clock_of(other));
  };
  std::vector<Offset> offsets(tasks);
  // All times are converted to the clock of ps 0.
  offsets[0] = {.ahead = 0, .error = 0, .is_known = true};
  const auto improve = [&](std::size_t task, std::int64_t ahead, std::int64_t error) {
    Offset& offset = offsets[task];
    const bool is_better = !offset.is_known || error < offset.error;
    if (is_better) {  // limited, so that sums of reported times do not overflow
      offset = {.ahead = std::clamp(ahead, -kFarthest, kFarthest),
                .error = std::min(error, kFarthest),
                .is_known = true};
    }
    return is_better;
  };
  bool changes = true;
  // Bellman-Ford over the errors: a shortest path has at most as many edges as there are tasks. The
  // bound also ends it if rounding never settles.
  for (std::size_t round = 0; changes && round <= tasks; ++round) {
    changes = false;
    for (std::size_t one = 0; one < tasks; ++one) {
      for (std::size_t other = 0; other < tasks; ++other) {
        if (offsets[one].is_known && same(one, other)) {
          changes = improve(other, offsets[one].ahead, offsets[one].error) || changes;
        }
      }
    }
    for (std::size_t index = 0; index < ps_.size(); ++index) {
      for (std::size_t rank = 0; rank < trainers_.size(); ++rank) {
        const std::size_t trainer = ps_.size() + rank;
        const std::optional<Bounds> ps_ahead =
            same(index, trainer) ? std::nullopt : bounds(rank, index);
        if (!ps_ahead) {
          continue;
        }
        const std::int64_t middle = std::midpoint(ps_ahead->least, ps_ahead->most);
        // 1 ns for the rounding of the midpoint, so that each edge costs something.
        const std::int64_t error = std::abs(ps_ahead->most - ps_ahead->least) / 2 + 1;
        if (offsets[index].is_known) {
          changes = improve(trainer, offsets[index].ahead - middle, offsets[index].error + error) ||
                    changes;
        }
        if (offsets[trainer].is_known) {
          changes =
              improve(index, offsets[trainer].ahead + middle, offsets[trainer].error + error) ||
              changes;
        }
      }
    }
  }
  return offsets;
}

std::optional<Trace::Bounds> Trace::bounds(std::size_t rank, std::size_t ps) const {
  Bounds bounds{.least = std::numeric_limits<std::int64_t>::min(),
                .most = std::numeric_limits<std::int64_t>::max()};
  bool is_known = false;
  for (const RangeSample& at_ps : ps_[ps].steps) {
    const TrainerSample* const at_trainer = step_of(rank, at_ps.step);
    if (at_trainer == nullptr || rank >= at_ps.arrived.size() || at_ps.arrived[rank] < 0) {
      continue;
    }
    is_known = true;
    const std::int64_t computed = at_trainer->began + until(*at_trainer, Stage::kBackward);
    const std::int64_t whole = at_ps.began + in_ns(at_ps.arrived[rank]);
    // A gradient arrives after it was computed, and the parameters after the ps has made them: each
    // exchange narrows the interval of possible clock differences.
    bounds.most = std::min(bounds.most, whole - computed);
    // With several ps an answer counts as having arrived before it was read
    // (PsClient::answer_came); the time when reading had ended is certain.
    const std::int64_t came = at_trainer->began + until(*at_trainer, Stage::kPull);
    bounds.least = std::max(bounds.least, at_ps.began - came);
  }
  return is_known ? std::optional(bounds) : std::nullopt;
}

std::optional<double> Trace::clock_error_seconds() const {
  std::int64_t error = 0;
  const std::vector<Offset> known = offsets();
  for (std::size_t task = 0; task < known.size(); ++task) {
    const bool has_steps =
        task < ps_.size() ? !ps_[task].steps.empty() : !trainers_[task - ps_.size()].steps.empty();
    // Tasks without steps do not appear in the timeline, so their clocks do not matter.
    if (has_steps && !known[task].is_known) {
      return std::nullopt;
    }
    error = std::max(error, known[task].error);
  }
  return static_cast<double>(error) * 1e-9;
}

// ------------------------------------------------------------------------------------------ events

void Trace::write_trainer(Writer& out, std::size_t rank, const Offset& offset) const {
  const std::size_t process = ps_.size() + rank + 1;
  out.name("process_name", process, 0, net::task_name(cluster_->trainer(rank)));
  out.order(process);
  out.name("thread_name", process, 0, "steps");
  for (const TrainerSample& step : trainers_[rank].steps) {
    std::int64_t at = step.began - offset.ahead;
    const std::int64_t whole =
        std::min(step.began + until(step, Stage::kWait), ends_by(trainers_[rank].steps, step)) -
        offset.ahead;
    out.slice(process, 0, "step", fmt::format("step {}", step.step), at, whole, step.step);
    for (const Stage stage : kInOrder) {
      const std::int64_t end = std::min(at + in_ns(step.of(stage)), whole);
      // Stages that took no time are left out.
      if (end > at) {
        out.slice(process, 0, stage == Stage::kWait ? "wait" : "stage", name_of(stage), at, end,
                  step.step);
      }
      at = end;
    }
  }
}

// Writes the transfers of a step's gradient and of its parameters, and the arrow push -> apply ->
// answer.
void Trace::write_travel(Writer& out, std::size_t index, const RangeSample& step, std::size_t rank,
                         const std::vector<Offset>& offsets) const {
  const TrainerSample* const sent = step_of(rank, step.step);
  if (sent == nullptr || rank >= step.arrived.size() || step.arrived[rank] < 0) {
    return;
  }
  const Offset& at_ps = offsets[index];
  const Offset& at_trainer = offsets[ps_.size() + rank];
  const std::int64_t made = step.began - at_ps.ahead;
  // Clocks are known with an error, so times of two tasks may be in an impossible order. The limits
  // below keep each slice from a negative length.
  const std::int64_t came = std::max(sent->began - at_trainer.ahead, made);
  const std::int64_t whole =
      std::min(made + in_ns(step.arrived[rank]), ends_by(ps_[index].steps, step) - at_ps.ahead);
  const std::int64_t computed = sent->began - at_trainer.ahead + until(*sent, Stage::kBackward);
  const std::int64_t leaves = std::clamp(computed, std::min(came, whole), whole);
  out.slice(index + 1, rank + 1, "frame", "parameters", made, std::min(came, leaves), step.step);
  out.slice(index + 1, rank + 1, "frame", "gradient", leaves, whole, step.step);

  // Unique for each step, trainer and ps, so that viewers draw an arrow for each exchange.
  const std::uint64_t id =
      ((step.step - window_.from) * trainers_.size() + rank) * ps_.size() + index + 1;
  const std::size_t trainer = ps_.size() + rank + 1;
  out.flow(Writer::Flow::kBegins, id, trainer, computed);
  const std::int64_t applies = made + in_ns(step.waited);
  out.flow(Writer::Flow::kGoesOn, id, index + 1, applies);
  if (const TrainerSample* const next = step_of(rank, step.step + 1)) {
    // With several ps the answer may count as having arrived before it was sent (see bounds()).
    out.flow(Writer::Flow::kEnds, id, trainer, std::max(next->began - at_trainer.ahead, applies));
  }
}

void Trace::write_ps(Writer& out, std::size_t index, const std::vector<Offset>& offsets) const {
  const std::size_t process = index + 1;
  out.name("process_name", process, 0, net::task_name({.job = net::Job::kPs, .index = index}));
  out.order(process);
  out.name("thread_name", process, 0, "updates");
  for (std::size_t rank = 0; rank < trainers_.size(); ++rank) {
    out.name("thread_name", process, rank + 1,
             "to and from " + net::task_name(cluster_->trainer(rank)));
  }
  for (const RangeSample& step : ps_[index].steps) {
    const std::int64_t began = step.began - offsets[index].ahead;
    const std::int64_t limit = ends_by(ps_[index].steps, step) - offsets[index].ahead;
    const std::int64_t applies = std::min(began + in_ns(step.waited), limit);
    const std::int64_t ends = std::min(applies + in_ns(step.apply), limit);
    out.slice(process, 0, "step", fmt::format("step {}", step.step), began, ends, step.step);
    out.slice(process, 0, "wait", "gradients", began, applies, step.step);
    out.slice(process, 0, "stage", "apply", applies, ends, step.step);
    for (std::size_t rank = 0; rank < trainers_.size(); ++rank) {
      write_travel(out, index, step, rank, offsets);
    }
  }
}

std::string Trace::json() const {
  const std::vector<Offset> known = offsets();
  std::int64_t zero = std::numeric_limits<std::int64_t>::max();
  const auto look_at = [&](const auto& told, const Offset& offset) {
    for (const auto& step : told.steps) {
      // Times count from the earliest event: viewers lose digits of large numbers.
      zero = std::min(zero, step.began - offset.ahead);
    }
  };
  for (std::size_t index = 0; index < ps_.size(); ++index) {
    look_at(ps_[index], known[index]);
  }
  for (std::size_t rank = 0; rank < trainers_.size(); ++rank) {
    look_at(trainers_[rank], known[ps_.size() + rank]);
  }
  Writer out(empty() ? 0 : zero);
  for (std::size_t index = 0; index < ps_.size(); ++index) {
    write_ps(out, index, known);
  }
  for (std::size_t rank = 0; rank < trainers_.size(); ++rank) {
    write_trainer(out, rank, known[ps_.size() + rank]);
  }
  const std::optional<double> error = clock_error_seconds();
  return fmt::format(
      R"({{"displayTimeUnit":"ms","otherData":{{"from":{},"steps":{},"clock_error_us":{}}},"traceEvents":[{}
]}}
)",
      window_.from, window_.count, error ? fmt::format("{:.3f}", *error * 1e6) : "null",
      std::move(out).take());
}

}  // namespace disttf::roles
