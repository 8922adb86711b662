#include "roles/launch/shell/job_update.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "net/wire/text.h"
#include "roles/launch/shell/managed_job.h"
#include "run/setting.h"

namespace disttf::roles {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

JobUpdate::JobUpdate(asio::io_context& context, TaskProcesses& processes,
                     std::function<void(const std::string&)> say)
    : processes_(processes), say_(std::move(say)), timer_(context), roll_(processes.supervisor()) {}

std::string JobUpdate::begin(const LaunchOptions& wanted, const UpdatePlan& plan) {
  const std::string changes = net::joined(plan.changes, ", ");
  if (plan.restarts) {
    restarts_all_ = true;
    processes_.restart_all(wanted, [this] { on_all_restarted(); });
    return changes + "; all tasks restart from the newest checkpoint in " +
           argument_value(wanted.task_arguments, "train_dir");
  }
  // Before the workers and the rolling restart, whose new processes read these options.
  processes_.set_options(wanted);
  std::string sentence = changes;
  if (plan.new_workers != 0) {
    processes_.add_workers(plan.new_workers);
    sentence += plan.new_workers == 1
                    ? "; 1 worker joins the run"
                    : "; " + std::to_string(plan.new_workers) + " workers join the run";
  }
  if (plan.rolls) {
    roll_.begin(Clock::now());
    act(std::nullopt);
    sentence += "; the tasks restart one after the other";
  }
  return sentence;
}

void JobUpdate::on_all_restarted() {
  restarts_all_ = false;
  // The run may have ended or been stopped meanwhile.
  if (processes_.may_start()) {
    say_("update: done");
  }
}

void JobUpdate::on_progress(const Progress& progress) {
  act(roll_.stepped(progress.step, Clock::now()));
}

void JobUpdate::on_change() {
  if (roll_.is_under_way()) {
    act(roll_.task_changed(Clock::now()));
  }
}

void JobUpdate::act(const std::optional<std::string>& sentence) {
  if (sentence) {
    say_(*sentence);
  }
  // The rolling update restarts tasks through the supervisor, whose effects are carried out here.
  processes_.act();
  if (!roll_.is_under_way()) {
    timer_.cancel();
    return;
  }
  // Also cancels the wait before it, whose handler then gets an error.
  timer_.expires_at(roll_.deadline());
  timer_.async_wait([this](const std::error_code& error) {
    if (!error) {  // else the deadline has changed, or is gone
      act(roll_.time(Clock::now()));
    }
  });
}

namespace {

using Values = std::map<std::string, std::string, std::less<>>;

// An update may change only these flags, regardless of its sender. Flags that name a file, a
// folder, an address, a program, a secret or data are excluded, and those that decide about the
// sandbox: access to the control address must not grant more than the launch's user has given to
// its tasks.
//
// Settings of one task, which affect neither the weights nor other tasks.
constexpr std::array<std::string_view, 16> kOfOneTask = {
    "log_every",      "log_level",     "log_format",      "save_steps",
    "save_secs",      "max_to_keep",   "start_timeout",   "peer_timeout",
    "worker_timeout", "print_classes", "evaluator_secs",  "heartbeat_timeout",
    "keep_best",      "summary_every", "histogram_every", "print_weights_hash"};
// Settings that a task reads at its start, and the number of tasks of a run.
constexpr std::array<std::string_view, 3> kAtTheStart = {"max_workers", "threads",
                                                         "sharded_checkpoint"};
// Settings of the data, the model, and the number of trainers.
constexpr std::array<std::string_view, 10> kOfTheData = {
    "dataset", "data_checksum", "model",   "hidden_units", "height",
    "width",   "channels",      "classes", "numbers",      "trainers"};

struct Fixed {
  std::string_view name;
  const char* why;
};
constexpr std::array<Fixed, 3> kFixed = {{
    {"model", "the checkpoint holds another model"},
    {"hidden_units", "the checkpoint holds another model"},
    {"train_dir", "the checkpoints of this run cannot move"},
}};

constexpr const char* kOthers =
    "an update changes settings of the training, timeouts, how often tasks log, save and "
    "summarize, and how many tasks there are; start another launch for other files, addresses, "
    "data, secrets or confinement";

// Whether the flag is a setting that all tasks share, except data and model. None of these is a
// path or an address.
bool is_of_the_run(std::string_view flag) {
  const auto has_name = [flag](const Setting& setting) { return setting.name == flag; };
  return std::ranges::find(kAtTheStart, flag) != kAtTheStart.end() ||
         (std::ranges::any_of(settings(), has_name) &&
          std::ranges::find(kOfTheData, flag) == kOfTheData.end());
}

Values values_of(const std::vector<std::string>& arguments) {
  Values values;
  for (const std::string& argument : arguments) {
    const std::size_t equals = argument.find('=');
    // Without "=" the count is huge, and substr() takes the rest: a flag without a value.
    values[argument.substr(2, equals - 2)] =
        equals == std::string::npos ? "true" : argument.substr(equals + 1);
  }
  return values;
}

std::string shown(const std::string& value) { return value.empty() ? "default" : value; }

std::string cpus_text(const TaskLimits& limits) {
  return limits.cpus ? fmt::format("{:g}", *limits.cpus) : "all";
}

std::string memory_text(const TaskLimits& limits) {
  return limits.memory_mib ? std::to_string(*limits.memory_mib) : "unlimited";
}

void add(UpdatePlan& plan, std::string_view flag, const std::string& before,
         const std::string& after) {
  if (before != after) {
    plan.changes.push_back("--" + std::string(flag) + ": " + before + " -> " + after);
  }
}

void refuse_fewer(std::string_view flag, std::size_t now, std::size_t wanted) {
  if (wanted < now) {
    throw JobRefusal("--" + std::string(flag) + ": " + std::to_string(wanted) +
                     " is fewer than the " + std::to_string(now) +
                     " that run; counts cannot shrink");
  }
}

void compare_settings(const LaunchOptions& now, const LaunchOptions& wanted, UpdatePlan& plan) {
  const Values before = values_of(now.task_arguments);
  const Values after = values_of(wanted.task_arguments);
  Values names = before;
  // The union: a flag that is in one list only changes from or to its default.
  names.insert(after.begin(), after.end());
  const auto value = [](const Values& values, const std::string& name) {
    const auto found = values.find(name);
    return shown(found == values.end() ? "" : found->second);
  };
  for (const auto& [name, ignored] : names) {
    const std::string old_value = value(before, name);
    const std::string new_value = value(after, name);
    if (old_value == new_value) {
      continue;
    }
    add(plan, name, old_value, new_value);
    const auto fixed =
        std::find_if(kFixed.begin(), kFixed.end(),
                     [&name = name](const Fixed& each) { return each.name == name; });
    if (fixed != kFixed.end()) {
      throw JobRefusal("--" + name + ": cannot become " + new_value + " in this run, which has " +
                       old_value + ": " + fixed->why);
    }
    const bool is_of_one = std::ranges::find(kOfOneTask, name) != kOfOneTask.end();
    if (!is_of_one && !is_of_the_run(name)) {
      throw JobRefusal("--" + name + ": cannot become " + new_value + " in this run, which has " +
                       old_value + ": " + kOthers);
    }
    (is_of_one ? plan.rolls : plan.restarts) = true;
  }
}

void compare_limits(const LaunchOptions& now, const LaunchOptions& wanted, UpdatePlan& plan) {
  add(plan, "ps_cpus", cpus_text(now.ps_limits), cpus_text(wanted.ps_limits));
  add(plan, "ps_memory", memory_text(now.ps_limits), memory_text(wanted.ps_limits));
  add(plan, "cpus", cpus_text(now.trainer_limits), cpus_text(wanted.trainer_limits));
  add(plan, "memory", memory_text(now.trainer_limits), memory_text(wanted.trainer_limits));
  if (now.ps_limits != wanted.ps_limits || now.trainer_limits != wanted.trainer_limits) {
    // Limits take effect when a process starts.
    plan.rolls = true;
  }
}

// The most trainers that the running tasks accept.
std::size_t most_trainers(const LaunchOptions& options) {
  const std::string text = argument_value(options.task_arguments, "max_workers");
  std::size_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

void compare_counts(const LaunchOptions& now, const LaunchOptions& wanted, UpdatePlan& plan) {
  refuse_fewer("ps", now.ps, wanted.ps);
  refuse_fewer("workers", now.workers, wanted.workers);
  add(plan, "ps", std::to_string(now.ps), std::to_string(wanted.ps));
  add(plan, "workers", std::to_string(now.workers), std::to_string(wanted.workers));
  // The parameters are spread over all ps, so a new one needs a restore from a checkpoint.
  if (wanted.ps > now.ps) {
    plan.restarts = true;
  }
  if (wanted.workers > now.workers) {
    // The running tasks accept that many trainers; more need a restart of all tasks.
    if (wanted.workers <= most_trainers(now)) {
      plan.new_workers = wanted.workers - now.workers;
    } else {
      plan.restarts = true;
    }
  }
}

// Rejects a change of the tasks' metrics addresses, which no argument contains.
void refuse_other_metrics(const LaunchOptions& now, const LaunchOptions& wanted) {
  if (now.metrics != wanted.metrics) {
    throw JobRefusal(
        std::string("--metrics_port, --metrics_host, --metrics_textfile, --tls_cert, --tls_key and "
                    "--token_file cannot change in this run: ") +
        kOthers);
  }
}

}  // namespace

bool is_changed_by_updates(std::string_view flag) noexcept {
  return std::ranges::find(kOfOneTask, flag) != kOfOneTask.end() || is_of_the_run(flag);
}

std::string argument_value(const std::vector<std::string>& arguments, const std::string& name) {
  const Values values = values_of(arguments);
  const auto found = values.find(name);
  return found == values.end() ? std::string() : found->second;
}

UpdatePlan plan_update(const LaunchOptions& now, const LaunchOptions& wanted) {
  UpdatePlan plan;
  compare_counts(now, wanted, plan);
  compare_settings(now, wanted, plan);
  compare_limits(now, wanted, plan);
  refuse_other_metrics(now, wanted);
  // A restart of all tasks applies everything else, too.
  if (plan.restarts) {
    plan.rolls = false;
    plan.new_workers = 0;
    // Without a checkpoint the restart would lose all training so far.
    if (argument_value(now.task_arguments, "train_dir").empty()) {
      throw JobRefusal(
          "this needs all tasks to start again from a checkpoint, and the run has no --train_dir "
          "(" +
          plan.changes.front() + ")");
    }
  }
  return plan;
}

}  // namespace disttf::roles
