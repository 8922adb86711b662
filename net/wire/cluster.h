// The members of a run: the ordered address lists of the jobs, and which task this process is.
//
// Pure values and functions; callable from any thread. Only main reads the environment;
// net/resolvers/tf_config.h parses TF_CONFIG.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/wire/address.h"

namespace disttf::net {

enum class Job : std::uint8_t { kPs = 1, kWorker = 2, kChief = 3, kEvaluator = 4 };

[[nodiscard]] std::string_view job_name(Job job) noexcept;  // "ps", "worker", "chief", "evaluator"
// In any letter case; "master" is chief.
[[nodiscard]] std::optional<Job> job_from_name(std::string_view name) noexcept;

// One task of the cluster.
struct TaskId {
  Job job = Job::kWorker;
  std::size_t index = 0;
  friend bool operator==(const TaskId&, const TaskId&) = default;
};
[[nodiscard]] std::string to_string(const TaskId& task);  // "worker 1"
// "worker:1", as in commands and records.
[[nodiscard]] std::string task_name(const TaskId& task);
// "worker:1" or "worker-1". Throws std::invalid_argument with the name and what is allowed.
[[nodiscard]] TaskId task_from_name(std::string_view name);

// A trainer is a chief or a worker. Its rank: the chief's is 0, worker i's is i + (has chief).
struct Cluster {
  std::vector<Address> ps;
  std::vector<Address> workers;
  std::vector<Address> chief;       // none or one
  std::vector<Address> evaluators;  // none or one; not part of the hash, not waited for
  // A sparse TF_CONFIG names only some of the workers. The others are entries with port 0, and
  // trainer_count() is only a lower bound. Such a task takes the number of trainers from the
  // configuration that the chief has published; it cannot be a ps or the chief.
  bool sparse = false;
  // --max_workers: more workers may join than the lists name. They are entries with port 0, and
  // their own lists are longer. trainer_count() includes them.
  bool open = false;

  [[nodiscard]] std::size_t trainer_count() const noexcept { return chief.size() + workers.size(); }
  [[nodiscard]] TaskId trainer(std::size_t rank) const;         // REQUIRES: rank < trainer_count()
  [[nodiscard]] std::size_t rank_of(const TaskId& task) const;  // REQUIRES: chief or worker
  // Whether the task has rank 0: the chief, or worker 0 where there is no chief job.
  [[nodiscard]] bool is_chief(const TaskId& task) const;
  // The job's list. An index from outside must be checked against its size().
  [[nodiscard]] const std::vector<Address>& tasks_of(Job job) const noexcept;
  [[nodiscard]] const Address& address_of(const TaskId& task) const;  // REQUIRES: it is listed
  // False for a worker that may join later and is not waited for. REQUIRES: in range of its job.
  [[nodiscard]] bool is_listed(const TaskId& task) const;
};

// Trainers whose addresses name the same host, and whose gradients form one subtree of a step's sum
// (math/tree_sum.h): ranks [first, first + count). The first is the group's leader, the others are
// its members. A trainer without such neighbours is a group of its own.
struct HostGroup {
  std::size_t first = 0;
  std::size_t count = 1;
  friend bool operator==(const HostGroup&, const HostGroup&) = default;
};
// The largest group that contains the trainer; the trainer alone in a sparse or open cluster, where
// not all addresses are known. REQUIRES: rank < trainer_count().
[[nodiscard]] HostGroup host_group_of(const Cluster& cluster, std::size_t rank);

// SHA-256 of a canonical text of the ordered, normalised lists:
//
//   "disttf cluster 1
// " "ps a:1,b:2
// " "chief c:3
// " "worker d:4,e:5
// "
//
// (a job without tasks: only its name). Two tasks with different hashes have different clusters and
// would wait for each other forever. The text of a sparse or open cluster has "worker *
// " instead, because it does not list all workers: a listener accepts hash_of(its cluster) and
// sparse_hash_of(its cluster).
using ClusterHash = std::array<std::uint8_t, 32>;
[[nodiscard]] ClusterHash hash_of(const Cluster& cluster);
[[nodiscard]] ClusterHash sparse_hash_of(const Cluster& cluster);
// The first four bytes in hex, for logs and refusals.
[[nodiscard]] std::string short_hex(const ClusterHash& hash);

struct ClusterAndTask {
  Cluster cluster;
  TaskId task;
  std::vector<std::string> warnings;  // for example an unknown job that was ignored
};

// How messages name the lists and the index: as in the user's input.
struct ClusterFields {
  std::string_view ps = "--ps_hosts";
  std::string_view workers = "--worker_hosts";
  std::string_view chief = "--chief_host";
  std::string_view evaluators = "--evaluator_host";
  std::string_view index = "--task_index";
};

// Throws std::invalid_argument with one sentence (field, value, what is allowed) for: no ps or no
// trainer, a duplicate address, two chiefs or evaluators, a task index out of range (an evaluator
// need not be listed). A task of a sparse cluster must be a worker that is listed.
void validate(const Cluster& cluster, const TaskId& task, const ClusterFields& fields = {});

// Turns the cluster into an open one with `max_workers` workers. Throws std::invalid_argument if it
// has more.
void open_to(Cluster& cluster, std::size_t max_workers);

// The cluster of a run that a driver leads (net/wire/server_requests.h): the servers' lists, with
// the driver as the chief under a name that is never resolved. It is the same for every driver, so
// a server knows the tasks of the run before a driver asks the server to run its own.
[[nodiscard]] Cluster driven(const Cluster& servers);

}  // namespace disttf::net
