#include "run/monitor/core/trace_collector.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace disttf::roles {
namespace {

constexpr std::chrono::seconds kLook{1};
// Until all tasks have the request: the chief sends it to the ps with its next heartbeat, ps 0 to
// each trainer with that one's next; and a second of reserve.
constexpr std::chrono::seconds kUntilAllKnow{3};
// For the reports after the last step. A lost task sends none.
constexpr std::chrono::seconds kPatience{10};

}  // namespace

void TraceCollector::ask(std::uint64_t steps) {
  wanted_ = std::min(steps, Trace::most_steps(cluster_.trainer_count(), cluster_.ps.size()));
}

void TraceCollector::record_present(const std::vector<bool>& present) {
  present_ = present;
  if (trace_ && !present_.empty()) {
    trace_->record_present(present_);
  }
}

void TraceCollector::roll_back() {
  // Steps of the window may be made twice, so the timeline cannot be completed.
  is_rolled_back_ = trace_.has_value();
  seen_at_.reset();
}

std::optional<TraceCollector::Result> TraceCollector::look(std::uint64_t step,
                                                           Clock::time_point now) {
  if (trace_) {
    // A task that is lost never reports: the wait for it is limited from here on.
    if (step >= trace_->window().end() && !passed_at_) {
      passed_at_ = now;
    }
    const bool is_late = passed_at_ && now - *passed_at_ >= kPatience;
    return trace_->is_complete() || is_late || is_rolled_back_ ? std::optional(finish())
                                                               : std::nullopt;
  }
  return wanted_ != 0 ? begin(step, now) : std::nullopt;
}

std::optional<TraceCollector::Result> TraceCollector::begin(std::uint64_t step,
                                                            Clock::time_point now) {
  // The pace is measured first: from it follows a step that is far enough ahead.
  if (!seen_at_ || step < seen_step_) {
    seen_at_ = now;
    seen_step_ = step;
    return std::nullopt;
  }
  const std::chrono::duration<double> seen = now - *seen_at_;
  if (seen < kLook) {
    return std::nullopt;
  }
  const double a_second = static_cast<double>(step - seen_step_) / seen.count();
  const auto ahead =
      static_cast<std::uint64_t>(std::ceil(a_second * static_cast<double>(kUntilAllKnow.count())));
  // Tasks record only steps that are ahead of them when the request comes. 2 more for the step
  // under way and the rounding.
  const StepWindow window{.from = step + ahead + 2, .count = std::exchange(wanted_, 0)};
  seen_at_.reset();
  if (window.end() > train_steps_) {
    return Result{.trace = {},
                  .why_not = fmt::format(
                      "the run ends too soon: it has {} steps left; {} pass until all tasks have "
                      "the request, and the timeline needs {}",
                      train_steps_ - std::min(step, train_steps_), ahead + 2, window.count)};
  }
  trace_.emplace(cluster_, window);
  if (!present_.empty()) {
    trace_->record_present(present_);
  }
  passed_at_.reset();
  is_rolled_back_ = false;
  return std::nullopt;
}

TraceCollector::Result TraceCollector::finish() {
  Result result{.trace = std::exchange(trace_, std::nullopt), .why_not = {}};
  if (std::exchange(is_rolled_back_, false)) {
    result = {.trace = {}, .why_not = "the run was rolled back meanwhile; ask again"};
  } else if (result.trace->empty()) {
    result = {.trace = {}, .why_not = "no task has reported its steps; ask again"};
  }
  return result;
}

std::optional<TraceCollector::Result> TraceCollector::end() {
  if (trace_) {
    // The run has ended: what has come is all there is.
    return finish();
  }
  if (std::exchange(wanted_, 0) != 0) {
    return Result{.trace = {}, .why_not = "the run has ended meanwhile"};
  }
  return std::nullopt;
}

}  // namespace disttf::roles
