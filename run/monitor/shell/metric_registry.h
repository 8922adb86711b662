// The metrics of this process at run time: numbers that a task's threads change, and that another
// thread reads at any time.
//
// A change is one relaxed atomic operation, or two for a histogram; it allocates nothing and never
// waits. Two metrics are not ordered: a reader may see a step without its loss.
// run/monitor/core/metric_table.h lists the metrics; adding one takes a lock, and is done once by
// its owner.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "run/monitor/core/metric_table.h"
#include "run/monitor/core/metric_text.h"

namespace disttf::roles {

class Counter {
 public:
  void add(std::uint64_t count = 1) noexcept { value_.fetch_add(count, std::memory_order_relaxed); }
  // For counts that another object keeps.
  void set(std::uint64_t count) noexcept { value_.store(count, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t value() const noexcept {
    return value_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> value_{0};
};

// Has no value at first, and is then omitted.
class Gauge {
 public:
  void set(double value) noexcept {
    bits_.store(std::bit_cast<std::uint64_t>(value), std::memory_order_relaxed);
  }
  void clear() noexcept { bits_.store(kNone, std::memory_order_relaxed); }
  [[nodiscard]] bool has_value() const noexcept {
    return bits_.load(std::memory_order_relaxed) != kNone;
  }
  [[nodiscard]] double value() const noexcept {
    return std::bit_cast<double>(bits_.load(std::memory_order_relaxed));
  }

 private:
  // A NaN that no arithmetic produces.
  static constexpr std::uint64_t kNone = 0x7ff8'0000'6e6f'6e65;
  std::atomic<std::uint64_t> bits_{kNone};
};

class Histogram {
 public:
  // `bounds`: at most kMostBounds. `scale`: the value of an observed 1 in the metric's unit, such
  // as 1e-9 for nanoseconds.
  Histogram(std::span<const double> bounds, double scale);

  void observe(std::uint64_t value) noexcept {
    std::size_t bucket = 0;
    while (bucket < bounds_.size() && value > limits_[bucket]) {
      ++bucket;
    }
    counts_[bucket].fetch_add(1, std::memory_order_relaxed);
    sum_.fetch_add(value, std::memory_order_relaxed);
  }
  void observe(std::chrono::nanoseconds time) noexcept {
    observe(static_cast<std::uint64_t>(std::max<std::int64_t>(time.count(), 0)));
  }
  [[nodiscard]] HistogramValue value() const;

 private:
  static constexpr std::size_t kMostBounds = 24;
  std::span<const double> bounds_;
  double scale_;
  std::array<std::uint64_t, kMostBounds> limits_{};  // the bounds in observed units
  std::array<std::atomic<std::uint64_t>, kMostBounds + 1> counts_{};
  std::atomic<std::uint64_t> sum_{0};
};

// Measures the time until the end of the block, if there is a histogram.
class Timed {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Timed(Histogram* histogram) noexcept
      : histogram_(histogram), began_(histogram == nullptr ? Clock::time_point() : Clock::now()) {}
  ~Timed() {
    if (histogram_ != nullptr) {
      histogram_->observe(Clock::now() - began_);
    }
  }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  Histogram* histogram_;
  Clock::time_point began_;
};

class MetricRegistry {
 public:
  // Adds a sample to the metric, with labels that no other has. Its address is stable while this
  // object lives. Callable from any thread. REQUIRES: the metric has that type.
  Counter& counter(Metric metric, std::vector<MetricLabel> labels = {});
  Gauge& gauge(Metric metric, std::vector<MetricLabel> labels = {});
  Histogram& histogram(Metric metric, std::vector<MetricLabel> labels = {});
  void info(Metric metric, std::vector<MetricLabel> labels);

  // All present values, in the table's order. Callable from any thread.
  [[nodiscard]] std::vector<MetricFamily> read() const;

 private:
  struct Entry {
    template <typename Value, typename... Arguments>
    Entry(Metric which, std::vector<MetricLabel> with, std::in_place_type_t<Value> type,
          Arguments... arguments)
        : metric(which), labels(std::move(with)), value(type, arguments...) {}
    Metric metric;
    std::vector<MetricLabel> labels;
    std::variant<Counter, Gauge, Histogram> value;
  };
  template <typename Value, typename... Arguments>
  Value& add(Metric metric, std::vector<MetricLabel> labels, Arguments... arguments);

  mutable std::mutex mutex_;
  std::deque<Entry> entries_;  // the list is guarded by mutex_; the values need no guard
};

}  // namespace disttf::roles
