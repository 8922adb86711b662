#include "net/wire/cluster.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cassert>
#include <charconv>
#include <new>
#include <stdexcept>
#include <system_error>

#include "net/wire/text.h"

namespace disttf::net {
namespace {

void append_line(std::string& text, Job job, const std::vector<Address>& addresses) {
  text += job_name(job);
  text += (addresses.empty() ? "" : " ") + to_string(addresses) + '\n';
}

[[nodiscard]] ClusterHash sha256(std::string_view text) {
  ClusterHash hash{};
  unsigned int size = 0;
  // SHA-256 of bytes in memory fails only when OpenSSL cannot allocate.
  if (EVP_Digest(text.data(), text.size(), hash.data(), &size, EVP_sha256(), nullptr) != 1) {
    throw std::bad_alloc();
  }
  assert(size == hash.size());
  return hash;
}

// A list of a cluster with its name in messages.
struct NamedList {
  std::string_view field;
  const std::vector<Address>& addresses;
};

[[nodiscard]] std::array<NamedList, 4> named_lists(const Cluster& cluster,
                                                   const ClusterFields& fields) {
  return {NamedList{fields.ps, cluster.ps}, NamedList{fields.workers, cluster.workers},
          NamedList{fields.chief, cluster.chief}, NamedList{fields.evaluators, cluster.evaluators}};
}

void check_no_address_twice(const Cluster& cluster, const ClusterFields& fields) {
  struct Place {
    Address address;
    std::string text;  // "--ps_hosts[1]"
  };
  std::vector<Place> places;
  for (const NamedList& list : named_lists(cluster, fields)) {
    for (std::size_t i = 0; i < list.addresses.size(); ++i) {
      if (list.addresses[i].port == 0) continue;  // a worker that a sparse map omits
      places.push_back(
          {list.addresses[i], std::string(list.field) + "[" + std::to_string(i) + "]"});
    }
  }
  // Stable, so that the message names the two in the order of the lists.
  std::stable_sort(places.begin(), places.end(), [](const Place& left, const Place& right) {
    return left.address < right.address;
  });
  const auto twice = std::adjacent_find(
      places.begin(), places.end(),
      [](const Place& left, const Place& right) { return left.address == right.address; });
  if (twice == places.end()) return;
  fail(twice->text + " and " + std::next(twice)->text + " are both " +
       net::quoted(to_string(twice->address)) + "; every task needs an address of its own");
}

[[nodiscard]] std::string_view field_of(Job job, const ClusterFields& fields) {
  switch (job) {
    case Job::kPs:
      return fields.ps;
    case Job::kWorker:
      return fields.workers;
    case Job::kChief:
      return fields.chief;
    case Job::kEvaluator:
      break;
  }
  return fields.evaluators;
}

void check_index(const Cluster& cluster, const TaskId& task, const ClusterFields& fields) {
  const std::size_t listed = cluster.tasks_of(task.job).size();
  // An evaluator is valid without an entry: some orchestrators list it, some do not.
  const std::size_t count = task.job == Job::kEvaluator ? 1 : listed;
  if (task.index < count) return;
  const std::string what = std::string(fields.index) + " is " + std::to_string(task.index);
  const std::string list(field_of(task.job, fields));
  if (count == 0)
    fail(what + " of job " + std::string(job_name(task.job)) + ", but " + list +
         " lists no address");
  fail(what + ", but " + list + " has " + std::to_string(count) +
       (count == 1 ? " address: only 0 is allowed"
                   : " addresses: 0 to " + std::to_string(count - 1) + " are allowed"));
}

void check_sparse(const Cluster& cluster, const TaskId& task, const ClusterFields& fields) {
  if (!cluster.sparse) return;
  // A ps and the chief need the number of trainers before the configuration exists.
  if (task.job == Job::kPs || cluster.is_chief(task)) {
    fail(std::string(fields.workers) + " leaves workers out, but " + to_string(task) +
         " must know how many there are; list every worker");
  }
  if (task.job == Job::kWorker && !cluster.is_listed(task)) {
    fail(std::string(fields.index) + " is " + std::to_string(task.index) + ", but " +
         std::string(fields.workers) + " has no entry for it");
  }
}

}  // namespace

std::string_view job_name(Job job) noexcept {
  switch (job) {
    case Job::kPs:
      return "ps";
    case Job::kWorker:
      return "worker";
    case Job::kChief:
      return "chief";
    case Job::kEvaluator:
      break;
  }
  return "evaluator";
}

std::optional<Job> job_from_name(std::string_view name) noexcept {
  static constexpr std::size_t kLongestName = 9;  // "evaluator": longer text needs no copy
  if (name.size() > kLongestName) return std::nullopt;
  const std::string wanted = to_lower(name);
  // TF_CONFIG of older TensorFlow versions calls the chief "master".
  if (wanted == "master") return Job::kChief;
  for (const Job job : {Job::kPs, Job::kWorker, Job::kChief, Job::kEvaluator}) {
    if (wanted == job_name(job)) return job;
  }
  return std::nullopt;
}

std::string to_string(const TaskId& task) {
  return std::string(job_name(task.job)) + " " + std::to_string(task.index);
}

std::string task_name(const TaskId& task) {
  return std::string(job_name(task.job)) + ":" + std::to_string(task.index);
}

TaskId task_from_name(std::string_view name) {
  const std::size_t separator = name.find_first_of(":-");
  const std::string_view digits =
      separator == std::string_view::npos ? std::string_view() : name.substr(separator + 1);
  const std::optional<Job> job = job_from_name(name.substr(0, separator));
  TaskId task;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), task.index);
  if (!job || digits.empty() || error != std::errc{} || end != digits.data() + digits.size()) {
    throw std::invalid_argument(quoted(name) +
                                " is not a task's name; one is a job and a number, as in worker:1 "
                                "or worker-1");
  }
  task.job = *job;
  return task;
}

TaskId Cluster::trainer(std::size_t rank) const {
  assert(rank < trainer_count());
  // The chief precedes the workers, so rank 0 leads the run with and without a chief job.
  if (rank < chief.size()) return {Job::kChief, rank};
  return {Job::kWorker, rank - chief.size()};
}

std::size_t Cluster::rank_of(const TaskId& task) const {
  assert(task.job == Job::kChief || task.job == Job::kWorker);
  return task.job == Job::kChief ? task.index : task.index + chief.size();
}

// Doubles the subtree as long as the other half is on this host, too.
HostGroup host_group_of(const Cluster& cluster, std::size_t rank) {
  HostGroup group{.first = rank, .count = 1};
  // The hosts of unlisted workers are unknown, so no group can be formed.
  if (cluster.sparse || cluster.open) return group;
  const std::size_t trainers = cluster.trainer_count();
  const auto host_of = [&cluster](std::size_t each) -> const std::string& {
    return cluster.address_of(cluster.trainer(each)).host;
  };
  const std::string& host = host_of(rank);
  for (std::size_t half = 1; half < trainers; half *= 2) {
    // Subtrees of the sum begin at multiples of their size; the last one may be incomplete.
    const std::size_t first = rank & ~(2 * half - 1);
    const std::size_t end = std::min(first + 2 * half, trainers);
    for (std::size_t each = first; each < end; ++each) {
      // Hosts that were compared in the previous round are skipped.
      const bool is_known = each >= group.first && each < group.first + group.count;
      if (!is_known && host_of(each) != host) return group;
    }
    group = {.first = first, .count = end - first};
  }
  return group;
}

bool Cluster::is_chief(const TaskId& task) const {
  return (task.job == Job::kChief || task.job == Job::kWorker) && rank_of(task) == 0;
}

const std::vector<Address>& Cluster::tasks_of(Job job) const noexcept {
  switch (job) {
    case Job::kPs:
      return ps;
    case Job::kWorker:
      return workers;
    case Job::kChief:
      return chief;
    case Job::kEvaluator:
      break;
  }
  return evaluators;
}

const Address& Cluster::address_of(const TaskId& task) const {
  assert(task.index < tasks_of(task.job).size());
  return tasks_of(task.job)[task.index];
}

bool Cluster::is_listed(const TaskId& task) const { return address_of(task).port != 0; }

// Evaluators are not part of the hash: some orchestrators list them, some do not.
ClusterHash hash_of(const Cluster& cluster) {
  // Not all workers are listed, so the lists of two tasks may differ.
  if (cluster.sparse || cluster.open) return sparse_hash_of(cluster);
  // The text is a part of the wire format: tasks of different releases must compute the same hash.
  std::string text = "disttf cluster 1\n";
  append_line(text, Job::kPs, cluster.ps);
  append_line(text, Job::kChief, cluster.chief);
  append_line(text, Job::kWorker, cluster.workers);
  return sha256(text);
}

ClusterHash sparse_hash_of(const Cluster& cluster) {
  std::string text = "disttf cluster 1\n";
  append_line(text, Job::kPs, cluster.ps);
  append_line(text, Job::kChief, cluster.chief);
  // No address list can produce this line, so the hash equals that of no complete cluster.
  text += "worker *\n";
  return sha256(text);
}

std::string short_hex(const ClusterHash& hash) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  static constexpr std::size_t kShownBytes = 4;
  std::string out;
  for (std::size_t i = 0; i < kShownBytes; ++i) {
    out += kDigits[hash[i] >> 4U];
    out += kDigits[hash[i] & 0x0FU];
  }
  return out;
}

void validate(const Cluster& cluster, const TaskId& task, const ClusterFields& fields) {
  if (cluster.ps.empty()) {
    fail(std::string(fields.ps) + " lists no address; at least one ps is needed");
  }
  if (cluster.trainer_count() == 0) {
    fail(std::string(fields.workers) +
         " lists no address; at least one worker or a chief is needed");
  }
  for (const NamedList& list :
       {NamedList{fields.chief, cluster.chief}, NamedList{fields.evaluators, cluster.evaluators}}) {
    if (list.addresses.size() > 1) {
      fail(std::string(list.field) + " has " + std::to_string(list.addresses.size()) +
           " addresses (" + net::quoted(to_string(list.addresses[0])) + ", " +
           net::quoted(to_string(list.addresses[1])) + "); at most one is allowed");
    }
  }
  // The index is checked after the lists, whose errors explain a wrong index.
  check_no_address_twice(cluster, fields);
  check_index(cluster, task, fields);
  check_sparse(cluster, task, fields);
}

void open_to(Cluster& cluster, std::size_t max_workers) {
  if (max_workers < cluster.workers.size()) {
    fail("--max_workers: " + std::to_string(max_workers) + " is less than the " +
         std::to_string(cluster.workers.size()) + " workers that the cluster lists");
  }
  // The new entries have no address: such workers connect to the ps, and no task connects to them.
  cluster.workers.resize(max_workers, Address{});
  cluster.open = true;
}

Cluster driven(const Cluster& servers) {
  Cluster cluster = servers;
  cluster.chief = {{.host = "driver", .port = 1}};
  return cluster;
}

}  // namespace disttf::net
