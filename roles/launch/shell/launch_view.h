// A running launch as `status` and `top` show it, from the answers of its control address.
//
// Pure functions, except LaunchMeter, which keeps the previous answer; not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "run/monitor/core/chart.h"
#include "run/monitor/core/text_table.h"

namespace disttf::roles {

// Unknown values are nullopt or empty.
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
  std::optional<double> cpu;  // 1: one core, fully used
};

struct SlowestTask {
  std::string task;
  std::string stage;
  double slower = 0;      // 0.41: it takes 1.41 times as long as the others
  bool is_alone = false;  // no others: compared with its own fastest steps
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
  std::vector<double> losses;                           // of the run so far
  bool are_rows = false;                                // of a user's program, instead of images
  std::vector<std::pair<std::string, double>> numbers;  // its newest
  std::optional<SlowestTask> slowest;
  std::string result;  // the result line
  std::vector<LaunchTask> tasks;
};

class LaunchMeter {
 public:
  // `status`: the answer to GET /v1/status. `run`: that to GET /v1/run, or null. `now`: seconds of
  // a monotonic clock. Throws Failure (kError) if `status` has another form.
  [[nodiscard]] LaunchView take(const nlohmann::ordered_json& status,
                                const nlohmann::ordered_json& run, double now);

 private:
  struct Sample {
    double time = 0;
    std::optional<double> sent = {};  // bytes since the process started
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

// "launch 4711: training, step 821 of 4000, loss 0.0118, since ...", in lines of at most `width`
// columns; 0: one line. Ends with a newline.
[[nodiscard]] std::string run_line(const LaunchView& view, std::size_t width = 0);
// A row per task. Omits columns that no task has a value for.
[[nodiscard]] TextTable status_table(const LaunchView& view);
// The same for a screen. Here and below: `style.columns` 0: any width; `style.rows` 0: any number
// of lines.
[[nodiscard]] std::string status_screen(const LaunchView& view, const TextStyle& style);
[[nodiscard]] std::string top_text(const LaunchView& view, const TextStyle& style);
// One line, ending with a newline.
[[nodiscard]] std::string launch_json(const LaunchView& view);
// The last line: the result of the run.
[[nodiscard]] std::string end_line(const LaunchView& view);

}  // namespace disttf::roles
