// Who is in the run: the ordered address lists of the jobs, and which task this process is.
//
// Pure values and functions; callable from any thread. The environment is read by main only;
// TF_CONFIG is parsed by net/resolvers/tf_config.h.
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

// Whether a byte from the wire is one of them.
[[nodiscard]] constexpr bool is_job(std::uint8_t value) noexcept {
  return value >= static_cast<std::uint8_t>(Job::kPs) &&
         value <= static_cast<std::uint8_t>(Job::kEvaluator);
}
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
// "worker:1", as commands and records have it.
[[nodiscard]] std::string task_name(const TaskId& task);
// "worker:1" or "worker-1". Throws std::invalid_argument with the name and what is allowed.
[[nodiscard]] TaskId task_from_name(std::string_view name);

// A trainer is a chief or a worker; its rank: the chief's is 0, worker i's is i + (has chief).
struct Cluster {
  std::vector<Address> ps;
  std::vector<Address> workers;
  std::vector<Address> chief;       // none or one
  std::vector<Address> evaluators;  // none or one; not part of the hash, never waited for
  // A sparse TF_CONFIG names only some of the workers: the others are entries with port 0, and
  // trainer_count() is only a lower bound. Such a task trains with the number of trainers that
  // the chief published, and can be neither ps nor chief.
  bool sparse = false;
  // --max_workers: more workers may join than the lists name; they are entries with port 0, and
  // each has itself a longer list. trainer_count() counts them.
  bool open = false;

  [[nodiscard]] std::size_t trainer_count() const noexcept { return chief.size() + workers.size(); }
  [[nodiscard]] TaskId trainer(std::size_t rank) const;         // REQUIRES: rank < trainer_count()
  [[nodiscard]] std::size_t rank_of(const TaskId& task) const;  // REQUIRES: chief or worker
  // Chief job, or worker 0 where there is none: rank 0.
  [[nodiscard]] bool is_chief(const TaskId& task) const;
  // The job's list, e.g. of an index that came from outside: check it against size().
  [[nodiscard]] const std::vector<Address>& tasks_of(Job job) const noexcept;
  [[nodiscard]] const Address& address_of(const TaskId& task) const;  // REQUIRES: it is listed
  // Not a worker that may join but that nobody has to expect. REQUIRES: in range of its job.
  [[nodiscard]] bool is_listed(const TaskId& task) const;
};

// Trainers whose addresses name one host, and whose gradients are one subtree of a step's sum
// (math/tree_sum.h): ranks [first, first + count). The first is the group's leader, the others are
// its members. A trainer that has no such neighbours is a group of its own.
struct HostGroup {
  std::size_t first = 0;
  std::size_t count = 1;
  friend bool operator==(const HostGroup&, const HostGroup&) = default;
};
// The largest that the trainer is in; of its own in a sparse or open cluster, where not all are
// known. REQUIRES: rank < trainer_count().
[[nodiscard]] HostGroup host_group_of(const Cluster& cluster, std::size_t rank);

// SHA-256 of a canonical text of the ordered, normalised lists:
//
//   "disttf cluster 1\n" "ps a:1,b:2\n" "chief c:3\n" "worker d:4,e:5\n"
//
// (a job without tasks: its name alone). Two tasks with different hashes have been given different
// clusters and would wait for each other for ever. The text of a sparse or open cluster has
// "worker *\n" instead, since it does not know them all: a listener accepts hash_of(its cluster)
// and sparse_hash_of(its cluster).
using ClusterHash = std::array<std::uint8_t, 32>;
[[nodiscard]] ClusterHash hash_of(const Cluster& cluster);
[[nodiscard]] ClusterHash sparse_hash_of(const Cluster& cluster);
// The first four bytes in hex: what logs and refusals show of a hash.
[[nodiscard]] std::string short_hex(const ClusterHash& hash);

struct ClusterAndTask {
  Cluster cluster;
  TaskId task;
  std::vector<std::string> warnings;  // e.g. an unknown job that was ignored
};

// How messages name the lists and the index: as the user wrote them.
struct ClusterFields {
  std::string_view ps = "--ps_hosts";
  std::string_view workers = "--worker_hosts";
  std::string_view chief = "--chief_host";
  std::string_view evaluators = "--evaluator_host";
  std::string_view index = "--task_index";
};

// Throws std::invalid_argument with one sentence (field, value, what is allowed) when: no ps or no
// trainer, an address twice, two chiefs or evaluators, the task's index out of range (an
// evaluator need not be listed). A task of a sparse cluster must be a worker that is listed.
void validate(const Cluster& cluster, const TaskId& task, const ClusterFields& fields = {});

// Makes it an open cluster of `max_workers`. Throws std::invalid_argument when that is less than it
// has.
void open_to(Cluster& cluster, std::size_t max_workers);

}  // namespace disttf::net
