#include "main/render/deployment.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "net/wire/text.h"

namespace disttf::render {
namespace {

std::vector<net::Address>& list_for(net::Cluster& cluster, net::Job job) {
  switch (job) {
    case net::Job::kPs:
      return cluster.ps;
    case net::Job::kWorker:
      return cluster.workers;
    case net::Job::kChief:
      return cluster.chief;
    case net::Job::kEvaluator:
      break;
  }
  return cluster.evaluators;
}

std::vector<std::string> arguments_of(const net::TaskId& task, const net::Cluster& cluster,
                                      const Deployment& deployment, Family family) {
  std::vector<std::string> arguments{std::string(net::job_name(task.job)),
                                     "--task_index=" + std::to_string(task.index),
                                     "--ps_hosts=" + net::to_string(cluster.ps)};
  if (!cluster.workers.empty()) {
    arguments.push_back("--worker_hosts=" + net::to_string(cluster.workers));
  }
  if (!cluster.chief.empty()) {
    arguments.push_back("--chief_host=" + net::to_string(cluster.chief));
  }
  // The engine's index replaces the second word (arguments_of_group()), so flags of the user come
  // last.
  arguments.insert(arguments.end(), deployment.flags.begin(), deployment.flags.end());
  if (family == Family::kKeepsAlive) {
    // Else the engine would restart a finished task, and the run with it.
    arguments.emplace_back("--on_finish=idle");
  }
  return arguments;
}

}  // namespace

const TaskGroup* Deployment::group(net::Job job) const {
  const auto found = std::find_if(groups.begin(), groups.end(),
                                  [job](const TaskGroup& each) { return each.job == job; });
  return found == groups.end() ? nullptr : &*found;
}

std::size_t Deployment::task_count() const {
  std::size_t count = 0;
  for (const TaskGroup& each : groups) {
    count += each.count;
  }
  return count;
}

const Volume* Deployment::volume_with(std::string_view directory) const {
  const auto found = std::ranges::find_if(volumes, [directory](const Volume& volume) {
    // With the slash: /runs2 is not in the volume /runs.
    return directory == volume.path || directory.starts_with(volume.path + "/");
  });
  return found == volumes.end() ? nullptr : &*found;
}

// The image's own user can neither write to a directory of the host nor read the file of a secret
// that belongs to another user.
bool Deployment::wants_root() const {
  return !secret.empty() ||
         std::ranges::any_of(volumes, [](const Volume& volume) { return !volume.read_only; });
}

std::string PlacedTask::name() const {
  return std::string(net::job_name(id.job)) + "-" + std::to_string(id.index);
}

std::vector<PlacedTask> place(const Deployment& deployment, Family family,
                              const PlaceOf& place_of) {
  constexpr std::size_t kMostPort = 65535;
  std::vector<PlacedTask> tasks;
  net::Cluster cluster;
  for (const TaskGroup& group : deployment.groups) {
    for (std::size_t index = 0; index < group.count; ++index) {
      PlacedTask task;
      task.id = {.job = group.job, .index = group.first + index};
      task.group = &group;
      // place_of() may call name(), so the id and the group are set before.
      const Place at = place_of(task, tasks.size());
      if (at.port > kMostPort) {
        refuse("port", std::to_string(group.port),
               "low enough: " + task.name() + " would get " + std::to_string(at.port) +
                   ", and ports end at 65535");
      }
      task.address = {.host = at.host, .port = static_cast<std::uint16_t>(at.port)};
      list_for(cluster, group.job).push_back(task.address);
      tasks.push_back(std::move(task));
    }
  }
  // Reports a cluster that the tasks would reject, before anything is deployed.
  net::validate(cluster, tasks.front().id);
  // After all addresses are known: each task's flags list all of them.
  for (PlacedTask& task : tasks) {
    task.arguments = arguments_of(task.id, cluster, deployment, family);
  }
  return tasks;
}

std::vector<std::string> arguments_of_group(const std::vector<PlacedTask>& tasks,
                                            const TaskGroup& group, std::string_view index) {
  const auto first = std::find_if(tasks.begin(), tasks.end(), [&group](const PlacedTask& task) {
    return task.id.job == group.job;
  });
  // Any task of the group will do: besides the index, their arguments are equal. The group has a
  // task, so first is valid.
  std::vector<std::string> arguments = first->arguments;
  // arguments_of() puts this flag second.
  arguments.at(1) = "--task_index=" + std::string(index);
  return arguments;
}

std::vector<std::string> serving_arguments(const Deployment& deployment,
                                           const std::string& directory) {
  // The engine decides which names lead here: of a Service, a router, a load balancer.
  return {"serve",
          directory,
          "--host=0.0.0.0",
          "--host_names=*",
          "--port=" + std::to_string(deployment.serving.port),
          "--name=" + deployment.name};
}

Deployment serving_part(const Deployment& deployment) {
  const Volume* const found = deployment.volume_with(deployment.serving.directory);
  if (found == nullptr || found->read_only) {
    throw std::invalid_argument("--serve: " + std::to_string(deployment.serving.replicas) +
                                " needs --train_dir in a writable directory of --volumes, where "
                                "the serving tasks read what the chief saves");
  }
  Deployment part = deployment;
  part.volumes = {*found};
  // A service only reads: one that an attacker controls cannot replace the model.
  part.volumes.front().read_only = true;
  // serve exports its metrics at the port of its requests.
  part.metrics_port.reset();
  part.secret.clear();  // it connects to no task of the run
  part.command.clear();
  return part;
}

// `why` continues "is not".
void refuse(std::string_view field, std::string_view value, const std::string& why) {
  throw std::invalid_argument("--" + std::string(field) + ": " + net::quoted(value) + " is not " +
                              why);
}

void check_text(std::string_view field, const std::string& text) {
  // isprint() and its like depend on the locale, and reject UTF-8.
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; };
  if (std::ranges::any_of(text, is_control)) {
    refuse(field, text, "one line of printable characters");
  }
}

void check_characters(std::string_view field, const std::string& text,
                      std::string_view besides_letters, const char* allowed) {
  const auto is_allowed = [&](char c) {
    return net::is_letter(c) || net::is_digit(c) ||
           besides_letters.find(c) != std::string_view::npos;
  };
  if (!std::ranges::all_of(text, is_allowed)) {
    refuse(field, text, allowed);
  }
}

// A letter first, as in RFC 1035: Kubernetes requires that of Services.
bool is_dns_label(std::string_view text) {
  const auto is_lower = [](char c) { return net::is_letter(c) && c == net::lower(c); };
  return !text.empty() && is_lower(text.front()) && text.back() != '-' &&
         std::ranges::all_of(
             text, [&is_lower](char c) { return is_lower(c) || net::is_digit(c) || c == '-'; });
}

void check_length(const Deployment& deployment, const std::string& longest, std::size_t most,
                  std::string_view what_for) {
  if (longest.size() > most) {
    refuse("name", deployment.name,
           "short enough: " + net::quoted(longest) + " has " + std::to_string(longest.size()) +
               " characters, " + std::string(what_for) + " at most " + std::to_string(most));
  }
}

std::string longest_task_name(const Deployment& deployment) {
  std::string longest;
  for (const TaskGroup& group : deployment.groups) {
    // Between names of the same job, the last index has the most digits.
    const std::string name =
        std::string(net::job_name(group.job)) + "-" + std::to_string(group.first + group.count - 1);
    if (name.size() > longest.size()) {
      longest = name;
    }
  }
  return longest;
}

void refuse_evaluator(const Deployment& deployment, std::string_view target) {
  if (deployment.group(net::Job::kEvaluator) != nullptr) {
    refuse("evaluator", "true",
           "allowed for " + std::string(target) +
               "; compose, jobset, kubernetes, nomad, statefulset, swarm, tfjob and trainjob "
               "support one");
  }
}

void refuse_gpus(const Deployment& deployment, std::string_view target) {
  for (const TaskGroup& group : deployment.groups) {
    if (group.resources.gpus != 0) {
      refuse("gpus", std::to_string(group.resources.gpus),
             "allowed for " + std::string(target) + ", which cannot ask for GPUs; 0 is");
    }
  }
}

void refuse_placement(const Deployment& deployment, std::string_view target) {
  for (const TaskGroup& group : deployment.groups) {
    if (!group.placement.empty()) {
      refuse("placement", group.placement.front(),
             "allowed for " + std::string(target) + ", which has no placement; leave it out");
    }
  }
}

void refuse_named_volumes(const Deployment& deployment, std::string_view target) {
  for (const Volume& volume : deployment.volumes) {
    if (!volume.is_host_path()) {
      refuse("volumes", volume.source,
             "a path, which begins with /: " + std::string(target) + " keeps no named volumes");
    }
  }
}

void refuse_volumes(const Deployment& deployment, std::string_view target) {
  if (!deployment.volumes.empty()) {
    refuse("volumes", deployment.volumes.front().source,
           "allowed for " + std::string(target) + ", which mounts nothing; leave it out");
  }
}

void refuse_resources(const Deployment& deployment, std::string_view target) {
  for (const TaskGroup& group : deployment.groups) {
    const bool has_cpus = group.resources.cpus.has_value();
    if (has_cpus || group.resources.memory_mib) {
      refuse(
          has_cpus ? "cpus" : "memory",
          has_cpus ? cpus_text(*group.resources.cpus) : std::to_string(*group.resources.memory_mib),
          "allowed for " + std::string(target) + ", which limits nothing; leave it out");
    }
  }
}

void refuse_image(const Deployment& deployment, std::string_view target) {
  if (!deployment.image.empty()) {
    refuse("image", deployment.image,
           "allowed for " + std::string(target) + ", which runs --program without an image");
  }
}

void refuse_metrics(const Deployment& deployment, std::string_view target) {
  if (deployment.metrics_port) {
    refuse(
        "metrics_port", std::to_string(*deployment.metrics_port),
        "allowed for " + std::string(target) + ", whose tasks may share a machine and its ports");
  }
}

void refuse_pod_monitor(const Deployment& deployment, std::string_view target) {
  if (deployment.pod_monitor) {
    refuse(
        "pod_monitor", "true",
        "allowed for " + std::string(target) + ", which makes no pods of Kubernetes; leave it out");
  }
}

void refuse_serving(const Deployment& deployment, std::string_view target, std::string_view why) {
  if (deployment.serving.replicas != 0) {
    refuse("serve", std::to_string(deployment.serving.replicas),
           "allowed for " + std::string(target) + ", " + std::string(why) +
               "; start disttf serve where it is to stay");
  }
}

void refuse_ps_port(const Deployment& deployment, std::string_view target) {
  for (const TaskGroup& group : deployment.groups) {
    // Only the first group can have a port of its own, that of the ps.
    if (group.port != deployment.groups.back().port) {
      refuse("ps_port", std::to_string(deployment.groups.front().port),
             "allowed for " + std::string(target) + ", which counts all ports from --port");
    }
  }
}

KeyValue read_placement(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    refuse("placement", text, "KEY=VALUE");
  }
  return {.key = text.substr(0, equals), .value = text.substr(equals + 1)};
}

std::string shell_word(const std::string& text) {
  constexpr std::string_view kSafe =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=,:@%+";
  if (!text.empty() && text.find_first_not_of(kSafe) == std::string::npos) {
    return text;
  }
  // Within single quotes only the quote itself has a meaning: it ends them, stands escaped, and
  // begins them again.
  return "'" + replaced(text, "'", "'\\''") + "'";
}

std::string cpus_text(double cpus) { return fmt::format("{:g}", cpus); }

std::string replaced(std::string text, std::string_view found, std::string_view replacement) {
  // Continues behind each replacement, which may contain `found`.
  for (std::size_t at = text.find(found); at != std::string::npos;
       at = text.find(found, at + replacement.size())) {
    text.replace(at, found.size(), replacement);
  }
  return text;
}

}  // namespace disttf::render
