#include "net/resolvers/tf_config.h"

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "net/resolvers/resolver.h"
#include "net/wire/text.h"

namespace disttf::net {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kExpectedList =
    "expected a list of \"host:port\" or a map from index to \"host:port\"";
constexpr std::string_view kExpectedTypes =
    "expected chief, master, worker, ps or evaluator, in any letter case";

// A JSON value for messages. Lists and maps are only named: writing them out would recurse as deep
// as they are nested. (net:: because std::quoted comes along with std::string.)
[[nodiscard]] std::string shown(const Json& value) {
  if (value.is_string()) return net::quoted(value.get_ref<const std::string&>());
  if (value.is_array()) return value.empty() ? "[]" : "a list";
  if (value.is_object()) return value.empty() ? "{}" : "a map";
  return value.dump();
}

[[nodiscard]] Json parse_json(std::string_view text) {
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    // Shows the position, not the whole variable, which may be long and contain private data.
    static constexpr std::size_t kContextBytes = 15;
    const std::size_t at = error.byte == 0 ? 0 : error.byte - 1;
    const std::size_t begin = at < kContextBytes ? 0 : at - kContextBytes;
    const std::string_view near =
        begin < text.size() ? text.substr(begin, 2 * kContextBytes) : std::string_view{};
    fail("TF_CONFIG is not valid JSON at byte " + std::to_string(error.byte) + ", near " +
         net::quoted(near));
  } catch (const Json::exception&) {  // not parse_error but out_of_range
    fail("TF_CONFIG contains a number that is out of range");
  }
}

// Parses decimal digits from 0 to kMaxTaskIndex.
[[nodiscard]] std::optional<std::size_t> index_from_digits(std::string_view text) {
  const std::optional<std::size_t> value = whole_number(text);
  return value && *value <= kMaxTaskIndex ? value : std::nullopt;
}

// One job of the JSON: addresses by index, possibly with gaps.
struct JobEntry {
  std::string field;  // "TF_CONFIG.cluster.ps"
  std::map<std::size_t, Address> addresses;
  [[nodiscard]] bool has_gaps() const {
    return !addresses.empty() && addresses.rbegin()->first + 1 != addresses.size();
  }
};

[[nodiscard]] Address parse_entry(const std::string& field, const Json& value) {
  if (!value.is_string()) fail(field + " is " + shown(value) + "; expected \"host:port\"");
  return parse_address(field, value.get_ref<const std::string&>());
}

[[nodiscard]] JobEntry parse_job(std::string field, const Json& value) {
  JobEntry job{std::move(field), {}};
  if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      const std::string field_path = job.field + "[" + std::to_string(i) + "]";
      job.addresses.emplace(i, parse_entry(field_path, value[i]));
    }
  } else if (value.is_object()) {
    for (const auto& [key, entry] : value.items()) {
      // Maps use the index as the key: sparse clusters list only some workers.
      const std::optional<std::size_t> index = index_from_digits(key);
      if (!index) {
        fail(job.field + " has the key " + net::quoted(key) + "; expected an index from 0 to " +
             std::to_string(kMaxTaskIndex));
      }
      const std::string field_path = job.field + "." + std::to_string(*index);
      if (!job.addresses.emplace(*index, parse_entry(field_path, entry)).second) {
        fail(field_path + " is given twice; every index needs one address");
      }
    }
  } else {
    fail(job.field + " is " + shown(value) + "; " + std::string(kExpectedList));
  }
  return job;
}

// The `cluster` object by job.
struct Jobs {
  std::string field;  // "TF_CONFIG.cluster" or "TF_CONFIG.sparseCluster"
  std::map<Job, JobEntry> entries;
  std::vector<std::string> warnings;

  [[nodiscard]] std::size_t size(Job job) const {
    const auto found = entries.find(job);
    return found == entries.end() ? 0 : found->second.addresses.size();
  }
  [[nodiscard]] std::size_t task_count() const {
    std::size_t count = 0;
    for (const auto& [job, entry] : entries) count += entry.addresses.size();
    return count;
  }
};

[[nodiscard]] Jobs parse_jobs(const std::string& field, const Json& value) {
  Jobs jobs{field, {}, {}};
  for (const auto& [name, entry] : value.items()) {
    const std::optional<Job> job = job_from_name(name);
    // Unknown jobs only cause a warning, because orchestrators add jobs that do not take part in
    // training.
    if (!job) {
      jobs.warnings.push_back(field + " has a job " + net::quoted(name) + " that is ignored; " +
                              std::string(kExpectedTypes));
      continue;
    }
    const auto [slot, fresh] = jobs.entries.emplace(*job, parse_job(field + "." + name, entry));
    // "chief" and "master" are one job.
    if (!fresh) {
      fail(slot->second.field + " and " + field + "." + name + " name the same job; give it once");
    }
  }
  return jobs;
}

// `cluster`, or `sparseCluster` if the first is missing or empty; nullopt: neither.
[[nodiscard]] std::optional<Jobs> find_jobs(const Json& root) {
  // TensorFlow reads sparseCluster only if there is no cluster.
  for (const char* key : {"cluster", "sparseCluster"}) {
    const auto found = root.find(key);
    if (found == root.end() || found->is_null()) continue;
    const std::string field = std::string("TF_CONFIG.") + key;
    if (!found->is_object()) {
      fail(field + " is " + shown(*found) + "; expected a map from job to addresses");
    }
    if (!found->empty()) return parse_jobs(field, *found);
  }
  return std::nullopt;
}

[[nodiscard]] std::size_t parse_task_index(const Json& task) {
  const auto found = task.find("index");
  // A missing index means 0, as in TensorFlow.
  if (found == task.end() || found->is_null()) return 0;
  std::optional<std::size_t> index;
  // Some orchestrators write the index as a string.
  if (found->is_string()) {
    index = index_from_digits(found->get_ref<const std::string&>());
  } else if (found->is_number_integer()) {
    index = index_from_digits(found->dump());
  }
  if (!index) {
    fail("TF_CONFIG.task.index is " + shown(*found) + "; expected an integer from 0 to " +
         std::to_string(kMaxTaskIndex));
  }
  return *index;
}

// nullopt: TF_CONFIG does not contain the task.
[[nodiscard]] std::optional<TaskId> parse_task(const Json& root) {
  const auto task = root.find("task");
  if (task == root.end() || task->is_null()) return std::nullopt;
  if (!task->is_object()) {
    fail("TF_CONFIG.task is " + shown(*task) + "; expected {\"type\": ..., \"index\": ...}");
  }
  const auto type = task->find("type");
  if (type == task->end()) {
    fail("TF_CONFIG.task.type is missing; " + std::string(kExpectedTypes));
  }
  std::optional<Job> job;
  if (type->is_string()) job = job_from_name(type->get_ref<const std::string&>());
  if (!job) {
    fail("TF_CONFIG.task.type is " + shown(*type) + "; " + std::string(kExpectedTypes));
  }
  return TaskId{*job, parse_task_index(*task)};
}

// One job with a single task, a trainer: TensorFlow runs it locally, and so does disttf.
[[nodiscard]] bool is_lone_trainer(const Jobs& jobs, const std::optional<TaskId>& task) {
  if (jobs.task_count() != 1 || jobs.size(Job::kWorker) + jobs.size(Job::kChief) != 1) return false;
  const Job only = jobs.size(Job::kChief) == 1 ? Job::kChief : Job::kWorker;
  return !task || *task == TaskId{only, 0};
}

// Kubeflow's enableDynamicWorker hides the cluster from some tasks: throws for these.
void refuse_dynamic(const Jobs& jobs, const TaskId& task) {
  static constexpr std::string_view kSwitchOff =
      "; disttf must know how many tasks there are: switch enableDynamicWorker off";
  if (jobs.task_count() == 0) {
    fail(jobs.field + " lists no address, but TF_CONFIG.task is " + to_string(task) +
         std::string(kSwitchOff));
  }
  // A ps that sees only itself would wait forever for trainers.
  if (task.job == Job::kPs && jobs.size(Job::kPs) == 1 && jobs.task_count() == 1) {
    fail(jobs.field + " of " + to_string(task) + " lists its own address and no trainer" +
         std::string(kSwitchOff));
  }
}

[[nodiscard]] std::vector<Address> dense_list(const JobEntry& job) {
  if (job.has_gaps()) {
    std::size_t missing = 0;
    while (job.addresses.contains(missing)) ++missing;
    fail(job.field + " has no entry for index " + std::to_string(missing) + ", but one for " +
         std::to_string(job.addresses.rbegin()->first) + "; only workers may be left out");
  }
  std::vector<Address> list;
  for (const auto& [index, address] : job.addresses) list.push_back(address);
  return list;
}

[[nodiscard]] Cluster build_cluster(const Jobs& jobs) {
  Cluster cluster;
  for (const auto& [job, entry] : jobs.entries) {
    switch (job) {
      case Job::kPs:
        cluster.ps = dense_list(entry);
        break;
      case Job::kChief:
        cluster.chief = dense_list(entry);
        break;
      case Job::kEvaluator:
        cluster.evaluators = dense_list(entry);
        break;
      case Job::kWorker:
        // Missing workers keep an empty address.
        cluster.sparse = entry.has_gaps();
        for (const auto& [index, address] : entry.addresses) {
          // The map is in the order of the indexes, so the list only grows. parse_job() has bounded
          // them.
          cluster.workers.resize(index + 1);
          cluster.workers[index] = address;
        }
        break;
    }
  }
  return cluster;
}

// The names of the lists as this TF_CONFIG spells them ("TF_CONFIG.cluster.master").
class FieldNames {
 public:
  explicit FieldNames(const Jobs& jobs) {
    for (const Job job : {Job::kPs, Job::kWorker, Job::kChief, Job::kEvaluator}) {
      const auto found = jobs.entries.find(job);
      names_[job] = found == jobs.entries.end() ? jobs.field + "." + std::string(job_name(job))
                                                : found->second.field;
    }
  }
  // Borrows from this object.
  [[nodiscard]] ClusterFields fields() const {
    return {.ps = names_.at(Job::kPs),
            .workers = names_.at(Job::kWorker),
            .chief = names_.at(Job::kChief),
            .evaluators = names_.at(Job::kEvaluator),
            .index = "TF_CONFIG.task.index"};
  }

 private:
  std::map<Job, std::string> names_;
};

}  // namespace

std::optional<ClusterAndTask> parse_tf_config(std::string_view json) {
  // An empty variable counts as unset.
  if (json.find_first_not_of(" \t\r\n") == std::string_view::npos) return std::nullopt;
  const Json root = parse_json(json);
  if (!root.is_object()) {
    fail("TF_CONFIG is " + shown(root) + "; expected {\"cluster\": ..., \"task\": ...}");
  }
  const std::optional<Jobs> jobs = find_jobs(root);
  if (!jobs) return std::nullopt;
  const std::optional<TaskId> task = parse_task(root);
  // Before the check for a missing task: a single trainer needs no task entry.
  if (is_lone_trainer(*jobs, task)) return std::nullopt;
  if (!task) {
    if (jobs->task_count() == 0) return std::nullopt;
    fail("TF_CONFIG.task is missing; expected {\"type\": ..., \"index\": ...}");
  }
  // Before validate(), whose message would blame a list that Kubeflow has left out.
  refuse_dynamic(*jobs, *task);
  ClusterAndTask result{build_cluster(*jobs), *task, jobs->warnings};
  validate(result.cluster, result.task, FieldNames(*jobs).fields());
  return result;
}

// TF_CONFIG, the variable: set by Kubeflow's TFJob, Volcano, TonY and cloud services.

std::optional<Found> find_in_tf_config(const ClusterFlags& /*flags*/,
                                       const Environment& environment) {
  const auto json = variable(environment, "TF_CONFIG");
  std::optional<ClusterAndTask> answer = parse_tf_config(json.value_or(""));
  if (!answer) return std::nullopt;
  Found found{std::move(*answer), {}};
  const TaskId& task = found.answer.task;
  found.facts = {{"job", std::string(job_name(task.job)), "TF_CONFIG.task.type"},
                 {"index", std::to_string(task.index), "TF_CONFIG.task.index"}};
  add_cluster_facts(found.facts, found.answer.cluster, "TF_CONFIG");
  return found;
}

}  // namespace disttf::net
