#include "roles/launch/launcher.h"

#include <algorithm>
#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <chrono>
#include <csignal>
#include <numeric>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "roles/launch/console.h"
#include "roles/launch/fault_plan.h"
#include "roles/launch/supervisor.h"
#include "roles/outcome.h"
#include "roles/progress.h"
#include "roles/stop_signal.h"

namespace disttf::roles {
namespace {

class Launcher {
 public:
  explicit Launcher(const LaunchOptions& options);
  int run();

 private:
  [[nodiscard]] SupervisorEvents events();
  void plan_faults();
  void watch_signals();
  void on_signal(int signal);
  void on_line(const LocalTask& task, std::string_view line, bool is_result);
  void on_progress(std::string_view record);
  void make_fault(const ProcessFault& fault);
  void say(const std::string& sentence) { console_.print_error("disttf launch: " + sentence); }

  const LaunchOptions& options_;
  asio::io_context context_{1};
  asio::signal_set signals_;
  Console console_;
  ProgressMeter progress_;
  Supervisor supervisor_;
  std::optional<FaultPlan> faults_;
};

Launcher::Launcher(const LaunchOptions& options)
    : options_(options),
      signals_(context_, SIGINT, SIGTERM, SIGCHLD),
      supervisor_(context_, options, events()) {}

SupervisorEvents Launcher::events() {
  return {.line = [this](const LocalTask& task, std::string_view line,
                         bool is_result) { on_line(task, line, is_result); },
          .progress = [this](std::string_view record) { on_progress(record); },
          .chief_changed =
              [this](const LocalTask& chief) {
                const bool is_awaited = chief.pid > 0 || chief.waits;
                console_.draw_live(is_awaited ? progress_.on_chief_away() : std::string());
              },
          .say = [this](const std::string& sentence) { say(sentence); },
          // The readers drain what is left in the pipes, then run() returns.
          .all_gone = [this] { signals_.cancel(); }};
}

int Launcher::run() {
  plan_faults();
  watch_signals();
  supervisor_.start_all();
  context_.run();
  return supervisor_.policy().exit_code().value_or(kDone);
}

void Launcher::plan_faults() {
  if (options_.chaos) {
    std::vector<std::size_t> all(supervisor_.tasks().size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    faults_.emplace(*options_.chaos, std::move(all));
    say("chaos: seed " + std::to_string(options_.chaos->seed) + ", " +
        std::to_string(options_.chaos->per_1000) + " faults in 1000 steps");
  }
}

void Launcher::watch_signals() {
  signals_.async_wait([this](std::error_code error, int signal) {
    if (!error) {
      watch_signals();
      on_signal(signal);
    }
  });
}

void Launcher::on_signal(int signal) {
  if (signal != SIGCHLD) {
    supervisor_.stop(exit_code_for(signal), signal);
  }
  supervisor_.reap();
}

void Launcher::on_line(const LocalTask& task, std::string_view line, bool is_result) {
  if (is_result) {
    console_.print_output(line);
  } else {
    console_.print_error(task.name + " " + std::string(line));
  }
}

void Launcher::on_progress(std::string_view record) {
  if (const std::optional<Progress> progress = parse_progress(record)) {
    console_.draw_live(progress_.on_record(*progress, std::chrono::steady_clock::now()));
    if (faults_ && !supervisor_.policy().exit_code()) {
      for (const ProcessFault& fault : faults_->take_until(progress->step)) {
        make_fault(fault);
      }
    }
  }
}

void Launcher::make_fault(const ProcessFault& fault) {
  LocalTask& task = *supervisor_.tasks().at(fault.task);
  const bool kills = fault.kind == ProcessFault::Kind::kKill;
  say(std::string("chaos: ") + (kills ? "SIGKILL" : "SIGSTOP") + " to " + task.name + " at step " +
      std::to_string(fault.step) +
      (kills ? "" : " for " + std::to_string(fault.frozen_for.count()) + " ms") +
      (task.pid > 0 ? "" : ", which is not running"));
  if (task.pid < 0) {
    return;
  }
  if (kills) {
    supervisor_.kill_task(task);
  } else {
    supervisor_.freeze(task, fault.frozen_for);
  }
}

}  // namespace

int run_launcher(const LaunchOptions& options) { return Launcher(options).run(); }

}  // namespace disttf::roles
