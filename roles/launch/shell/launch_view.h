// A running launch as `status` and `top` show it, made of what its control address answers.
//
// Pure functions but for LaunchMeter, which remembers the answer before; not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "roles/monitor/core/chart_text.h"
#include "roles/monitor/core/text_table.h"

namespace disttf::roles {

// What is not known is none, or empty.
struct LaunchTask {
  std::string task;  // "worker:1"
  std::string address;
  std::string state;
  std::string since;
  std::string doing;
  std::optional<std::uint64_t> pid;
  std::optional<std::uint64_t> restarts;
  std::optional<std::uint64_t> step;
  std::optional<double> wait;      // share of a step
  std::optional<double> sent;      // bytes a second
  std::optional<double> received;  // the same
  std::optional<double> rss_bytes;
  std::optional<double> cpu;  // 1: one core all the time
};

struct SlowestTask {
  std::string task;
  std::string stage;
  double slower = 0;      // 0.41: it takes 1.41 times as long as the others
  bool is_alone = false;  // no others: as long as its own fastest steps
};

struct LaunchView {
  std::optional<std::uint64_t> pid;
  std::string state;  // "training"
  std::string since;
  std::optional<std::uint64_t> step;
  std::optional<std::uint64_t> train_steps;
  std::optional<double> loss;
  std::optional<double> images_per_second;
  std::optional<double> validation_accuracy;
  std::optional<double> test_accuracy;
  std::optional<double> seconds_left;
  std::vector<double> losses;  // of the run up to now
  std::optional<SlowestTask> slowest;
  std::string result;  // the line of it
  std::vector<LaunchTask> tasks;
};

class LaunchMeter {
 public:
  // `status`: of GET /v1/status. `run`: of GET /v1/run, or null. `now`: seconds of a clock that
  // never goes back. Throws Failure (kError) where `status` is something else.
  [[nodiscard]] LaunchView take(const nlohmann::ordered_json& status,
                                const nlohmann::ordered_json& run, double now);

 private:
  struct Sample {
    double time = 0;
    std::optional<double> sent = {};  // bytes, since the process began
    std::optional<double> received = {};
    double cpu_seconds = 0;
    std::optional<double> sent_rate = {};
    std::optional<double> received_rate = {};
    std::optional<double> cpu = {};
  };
  void measure(const nlohmann::ordered_json& metrics, LaunchTask& task);
  void estimate_end(const nlohmann::ordered_json& run, double now, LaunchView& view);

  std::map<std::string, Sample> samples_;  // by task
  std::optional<std::uint64_t> first_step_;
  double first_at_ = 0;
};

// "launch 4711: training, step 821 of 4000, loss 0.0118, since ..." In lines of at most `width`
// columns; 0: one. Ends with a newline.
[[nodiscard]] std::string run_line(const LaunchView& view, std::size_t width = 0);
// A row a task. What no task has is no column.
[[nodiscard]] TextTable status_table(const LaunchView& view);
// The same as a screen shows it. Here and below: `style.columns` 0: any width; `style.rows` 0: any
// number of lines.
[[nodiscard]] std::string status_screen(const LaunchView& view, const TextStyle& style);
[[nodiscard]] std::string top_text(const LaunchView& view, const TextStyle& style);
// One line, which ends with a newline.
[[nodiscard]] std::string launch_json(const LaunchView& view);
// The last line: what became of it.
[[nodiscard]] std::string end_line(const LaunchView& view);

}  // namespace disttf::roles
