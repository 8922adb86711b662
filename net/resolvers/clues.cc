#include <stdexcept>

#include "net/resolvers/resolver.h"
#include "net/resolvers/tf_config.h"
#include "net/wire/text.h"

namespace disttf::net {
namespace {

[[nodiscard]] std::optional<std::size_t> parse_number(std::string_view text, std::size_t most) {
  const std::optional<std::size_t> value = whole_number(text);
  return value && *value <= most ? value : std::nullopt;
}

// The flag that limits the index of a job, for messages.
[[nodiscard]] std::string count_flag(Job job) {
  switch (job) {
    case Job::kPs:
      return "--ps";
    case Job::kWorker:
      return "--workers";
    default:
      return "--chief";
  }
}

void check_index(const TaskCounts& counts, const TaskId& task, std::string_view from) {
  // An evaluator belongs to no list: one is valid.
  const std::size_t count = task.job == Job::kEvaluator ? 1 : counts.of(task.job);
  if (task.index < count) return;
  const std::string what = std::string(from) + " makes this " + to_string(task) + ", but ";
  if (task.job == Job::kEvaluator) throw std::invalid_argument(what + "there can be only one");
  if (task.job == Job::kChief && count == 0) {
    throw std::invalid_argument(what + "--chief, which says that there is one, is missing");
  }
  throw std::invalid_argument(what + count_flag(task.job) + " is " + std::to_string(count) +
                              "; indexes are below it");
}

}  // namespace

std::optional<std::string_view> variable(const Environment& environment, std::string_view name) {
  // Container tools often set unused variables to blanks, so a blank value counts as unset.
  const auto found = environment.find(name);
  if (found == environment.end() ||
      found->second.find_first_not_of(" \t\r\n") == std::string::npos) {
    return std::nullopt;
  }
  return found->second;
}

std::string_view needed_variable(const Environment& environment, std::string_view name,
                                 std::string_view because) {
  const std::optional<std::string_view> value = variable(environment, name);
  if (!value) {
    throw std::invalid_argument(std::string(name) + " is not set; " + std::string(because));
  }
  return *value;
}

std::size_t parse_whole_number(std::string_view name, std::string_view text, std::size_t most) {
  const std::optional<std::size_t> value = parse_number(text, most);
  if (!value) {
    throw std::invalid_argument(std::string(name) + " is " + net::quoted(text) +
                                "; expected a whole number from 0 to " + std::to_string(most));
  }
  return *value;
}

std::optional<Job> job_at_end(std::string_view name) {
  const std::size_t hyphen = name.rfind('-');
  return job_from_name(hyphen == std::string_view::npos ? name : name.substr(hyphen + 1));
}

std::optional<TaskId> task_in_name(std::string_view name) {
  const std::size_t hyphen = name.rfind('-');
  if (hyphen == std::string_view::npos) return std::nullopt;
  const std::string_view number = name.substr(hyphen + 1);
  const std::optional<Job> job = job_at_end(name.substr(0, hyphen));
  const std::optional<std::size_t> index = parse_number(number, kMaxTaskIndex);
  // A number with a leading zero is part of a name and not an index.
  if (!job || !index || (number.size() > 1 && number.front() == '0')) return std::nullopt;
  return TaskId{*job, *index};
}

Found find_by_clues(const ClusterFlags& flags, const Clues& clues) {
  Found found;
  found.answer.cluster = cluster_of_task_hosts(flags);
  const TaskCounts counts = counts_of(flags);
  TaskId& task = found.answer.task;
  std::string job_from = clues.job_from;
  std::string index_from = clues.index_from;
  // With {place} in the pattern the orchestrator's index counts the tasks of all jobs.
  if (clues.may_be_place && has_word(flags.task_hosts, "place")) {
    if (clues.index >= counts.total()) {
      throw std::invalid_argument(clues.index_from + " is " + std::to_string(clues.index) +
                                  ", but --ps, --chief and --workers count " +
                                  std::to_string(counts.total()) + " tasks; places are below it");
    }
    task = task_at(counts, clues.index);
    job_from = index_from = clues.index_from + " (the place " + std::to_string(clues.index) + ")";
  } else if (clues.job) {
    // The orchestrator's job precedes that of the flags; check_against_flags() reports a
    // contradiction.
    task = {*clues.job, clues.index};
  } else if (flags.job) {
    task = {*flags.job, clues.index};
    job_from = "--job_name or the command";
  } else {
    throw std::invalid_argument("--job_name: missing; " + clues.index_from + " is " +
                                std::to_string(clues.index) + ", but " + clues.job_from +
                                " does not say of which job: ps, worker or chief");
  }
  check_index(counts, task, clues.index_from);
  validate(found.answer.cluster, task, kTaskHostsFields);
  found.facts = {{"job", std::string(job_name(task.job)), job_from},
                 {"index", std::to_string(task.index), index_from}};
  add_cluster_facts(found.facts, found.answer.cluster, "--task_hosts");
  return found;
}

std::string join(const std::vector<Address>& addresses) {
  std::string text;
  for (const Address& address : addresses) {
    if (!text.empty()) text += ',';
    text += address.port == 0 ? "?" : to_string(address);  // of a sparse cluster: unknown
  }
  return text;
}

void add_cluster_facts(std::vector<Fact>& facts, const Cluster& cluster, std::string_view from) {
  const auto add = [&](const char* what, const std::vector<Address>& addresses) {
    if (!addresses.empty()) facts.push_back({what, join(addresses), std::string(from)});
  };
  add("ps", cluster.ps);
  add("chief", cluster.chief);
  add("workers", cluster.workers);
  add("evaluators", cluster.evaluators);
}

}  // namespace disttf::net
