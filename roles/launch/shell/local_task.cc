#include "roles/launch/shell/local_task.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "data/json/json_text.h"
#include "run/outcome.h"

namespace disttf::roles {
namespace {

// The lists that a task gets: those of its first start, even if workers have joined since.
net::Cluster lists_for(const LocalTask& task, const LocalTasks& all) {
  net::Cluster cluster;
  for (const auto& each : all) {
    if (each->id.job == net::Job::kEvaluator) {
      continue;  // no task connects to it
    }
    auto& list = each->id.job == net::Job::kPs      ? cluster.ps
                 : each->id.job == net::Job::kChief ? cluster.chief
                                                    : cluster.workers;
    // All tasks of one start must agree on the number of workers, so a restarted task gets the
    // lists that the others still have.
    if (each->id.job == net::Job::kWorker && each->id.index >= task.workers_known) {
      continue;
    }
    list.resize(std::max(list.size(), each->id.index + 1));
    // Not its present address: the running tasks have the listed one.
    list[each->id.index] = each->listed;
  }
  return cluster;
}

// "runs/mnist.prom" -> "runs/mnist.worker-1.prom"
std::string textfile_of(const net::TaskId& id, const std::string& of_launch) {
  const std::filesystem::path path(of_launch);
  std::filesystem::path name = path.stem();
  name += "." + std::string(net::job_name(id.job)) + "-" + std::to_string(id.index);
  name += path.extension();
  return (path.parent_path() / name).string();
}

void add_metrics_words(std::vector<std::string>& words, const LocalTask& task,
                       const MetricsOptions& of_launch) {
  // The user's port is the launch's own; each task gets another one, with the same certificate and
  // tokens.
  if (task.metrics_port) {
    words.push_back("--metrics_port=" + std::to_string(task.metrics_port->address().port));
    words.push_back("--metrics_host=" + of_launch.host);
    if (!of_launch.files.certificate.empty()) {
      words.push_back("--tls_cert=" + of_launch.files.certificate);
      words.push_back("--tls_key=" + of_launch.files.key);
    }
    if (!of_launch.files.tokens.empty()) {
      words.push_back("--token_file=" + of_launch.files.tokens);
    }
  }
  if (!of_launch.textfile.empty()) {
    words.push_back("--metrics_textfile=" + textfile_of(task.id, of_launch.textfile));
  }
}

// The words of a task that do not depend on its lists.
void add_common_words(std::vector<std::string>& words, const LocalTask& task,
                      const LaunchOptions& options) {
  words.insert(words.end(), options.task_arguments.begin(), options.task_arguments.end());
  add_metrics_words(words, task, options.metrics);
  if (has_own_program(task, options)) {
    words.insert(words.end(), options.program_arguments.begin(), options.program_arguments.end());
  }
}

}  // namespace

bool has_own_program(const LocalTask& task, const LaunchOptions& options) {
  return !options.program_command.empty() && task.id.job != net::Job::kPs;
}

TaskStatus LocalTask::status(const SupervisedTask& state) const {
  TaskStatus status{
      .id = id, .address = port.address(), .pid = pid, .restarts = state.restarts, .since = since};
  if (pid > 0) {
    status.state = state.asked != Asked::kNothing ? TaskState::kStopping
                   : state.frozen                 ? TaskState::kFrozen
                                                  : TaskState::kRunning;
    // A task without an ending has not had a process yet.
  } else if (state.waits || !state.ending) {
    status.state = TaskState::kWaiting;
  } else {
    const bool is_done = state.ending->signal == 0 && state.ending->exit_code == kDone;
    status.state = is_done ? TaskState::kDone : TaskState::kEnded;
  }
  return status;
}

std::vector<net::TaskId> tasks_of(const LaunchOptions& options) {
  std::vector<net::TaskId> tasks;
  for (std::size_t index = 0; index < options.ps; ++index) {
    tasks.push_back({.job = net::Job::kPs, .index = index});
  }
  if (options.chief) {
    tasks.push_back({.job = net::Job::kChief, .index = 0});
  }
  for (std::size_t index = 0; index < options.workers; ++index) {
    tasks.push_back({.job = net::Job::kWorker, .index = index});
  }
  if (options.evaluator) {
    tasks.push_back({.job = net::Job::kEvaluator, .index = 0});
  }
  return tasks;
}

RestartPolicy::Part part_of(const net::TaskId& task, const LaunchOptions& options) {
  if (task.job == net::Job::kPs) {
    return RestartPolicy::Part::kPs;
  }
  if (task.job == net::Job::kEvaluator) {
    return RestartPolicy::Part::kEvaluator;
  }
  const bool is_chief = task.job == net::Job::kChief || (!options.chief && task.index == 0);
  return is_chief ? RestartPolicy::Part::kChief : RestartPolicy::Part::kWorker;
}

// A task that has moved gets only itself, the ps and the chief, by its environment.
std::vector<std::string> arguments_for(const LocalTask& task, const LocalTasks& all,
                                       const LaunchOptions& options) {
  if (task.is_moved()) {
    std::vector<std::string> arguments = {"train", "--resolver=tf_config"};
    add_common_words(arguments, task, options);
    return arguments;
  }
  const net::Cluster cluster = lists_for(task, all);
  std::vector<std::string> arguments = {std::string(net::job_name(task.id.job)),
                                        "--task_index=" + std::to_string(task.id.index),
                                        "--ps_hosts=" + net::to_string(cluster.ps)};
  if (!cluster.workers.empty()) {
    arguments.push_back("--worker_hosts=" + net::to_string(cluster.workers));
  }
  if (!cluster.chief.empty()) {
    arguments.push_back("--chief_host=" + net::to_string(cluster.chief));
  }
  add_common_words(arguments, task, options);
  return arguments;
}

namespace {

// The number of a trainer among all, a separate chief first; nullopt: it does not train.
std::optional<std::size_t> trainer_number(const net::TaskId& id, const LaunchOptions& options) {
  switch (id.job) {
    case net::Job::kChief:
      return 0;
    case net::Job::kWorker:
      return id.index + (options.chief ? 1 : 0);
    default:
      return std::nullopt;
  }
}

// TF_CONFIG of a worker that has moved: the lists of the other tasks do not contain its address,
// and it does not need theirs.
std::string tf_config_of_moved(const LocalTask& task, const LocalTasks& all) {
  const net::Cluster others = lists_for(task, all);
  const std::string index = std::to_string(task.id.index);
  nlohmann::json cluster;
  for (const net::Address& address : others.ps) {
    cluster["ps"].push_back(net::to_string(address));
  }
  for (const net::Address& address : others.chief) {
    cluster["chief"].push_back(net::to_string(address));
  }
  // A map with one index instead of a list: TF_CONFIG's form for a worker outside the others'
  // lists.
  cluster["worker"][index] = net::to_string(task.port.address());
  const nlohmann::json config = {{"cluster", std::move(cluster)},
                                 {"task", {{"type", "worker"}, {"index", task.id.index}}}};
  return "TF_CONFIG=" + data::json_text(config);
}

}  // namespace

std::vector<std::string> variables_for(const LocalTask& task, const LocalTasks& all,
                                       const LaunchOptions& options) {
  std::vector<std::string> variables =
      gpu_variables(options.gpus, trainer_number(task.id, options));
  if (task.is_moved()) {
    variables.push_back(tf_config_of_moved(task, all));
  }
  return variables;
}

}  // namespace disttf::roles
