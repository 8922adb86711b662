// Who is in the run: the ordered address lists of the jobs, and which task this process is.
//
// Pure values and functions; callable from any thread. The environment is read by main only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/address.h"

namespace disttf::net {

enum class Job : std::uint8_t { kPs = 1, kWorker = 2, kChief = 3, kEvaluator = 4 };

[[nodiscard]] std::string_view job_name(Job job) noexcept;  // "ps", "worker", "chief", "evaluator"
// Any letter case; "master" is chief.
[[nodiscard]] std::optional<Job> job_from_name(std::string_view name) noexcept;

// One task of the cluster.
struct TaskId {
  Job job = Job::kWorker;
  std::size_t index = 0;
  friend bool operator==(const TaskId&, const TaskId&) = default;
};
[[nodiscard]] std::string to_string(const TaskId& task);  // "worker 1"

// A trainer is a chief or a worker; its rank: the chief's is 0, worker i's is i + (has chief).
struct Cluster {
  std::vector<Address> ps;
  std::vector<Address> workers;
  std::vector<Address> chief;       // none or one
  std::vector<Address> evaluators;  // none or one; not part of the hash, never waited for

  [[nodiscard]] std::size_t trainer_count() const noexcept { return chief.size() + workers.size(); }
  [[nodiscard]] TaskId trainer(std::size_t rank) const;         // REQUIRES: rank < trainer_count()
  [[nodiscard]] std::size_t rank_of(const TaskId& task) const;  // REQUIRES: chief or worker
  // Chief job, or worker 0 where there is none: rank 0.
  [[nodiscard]] bool is_chief(const TaskId& task) const;
  [[nodiscard]] const Address& address_of(const TaskId& task) const;  // REQUIRES: it is listed
};

// SHA-256 over the ordered, normalised lists of ps, chief and workers. Two tasks with different
// hashes have been given different clusters and would wait for each other for ever.
using ClusterHash = std::array<std::uint8_t, 32>;
[[nodiscard]] ClusterHash hash_of(const Cluster& cluster);

struct ClusterAndTask {
  Cluster cluster;
  TaskId task;
  std::vector<std::string> warnings;  // e.g. an unknown job that was ignored
};

// Throws std::invalid_argument with one sentence (field, value, what is allowed) when: no ps or no
// trainer, an address twice, two chiefs, the task's index out of range.
void validate(const Cluster& cluster, const TaskId& task);

// TF_CONFIG by TensorFlow's rules and those of the orchestrators that write it (docs/operations.md).
// std::nullopt: no cluster in it, i.e. train locally. Throws std::invalid_argument as above.
[[nodiscard]] std::optional<ClusterAndTask> parse_tf_config(std::string_view json);

}  // namespace disttf::net
