#include "main/cluster_source.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "data/json/json_text.h"

namespace disttf {
namespace {

// The job that the command implies; nullopt if it implies none.
std::optional<net::Job> job_of(Command command) {
  switch (command) {
    case Command::kPs:
      return net::Job::kPs;
    case Command::kWorker:
      return net::Job::kWorker;
    case Command::kChief:
      return net::Job::kChief;
    case Command::kEvaluator:
    case Command::kServe:  // of a run that it follows, as an evaluator does
      return net::Job::kEvaluator;
    default:
      return std::nullopt;
  }
}

// The job that the command and --job_name agree on. Throws std::invalid_argument if they differ.
std::optional<net::Job> job_from_flags(Command command, const Flags& flags) {
  const std::optional<net::Job> implied = job_of(command);
  if (flags.job_name.empty()) {
    return implied;
  }
  const std::optional<net::Job> named = net::job_from_name(flags.job_name);
  if (!named) {
    throw std::invalid_argument("--job_name: \"" + flags.job_name +
                                "\" is not ps, worker or chief");
  }
  if (implied && implied != named) {
    throw std::invalid_argument("--job_name: \"" + flags.job_name + "\" contradicts the command " +
                                std::string(net::job_name(*implied)));
  }
  return named;
}

// An evaluator trains nothing: is_chief() does not apply to it, as its index is in no list of
// trainers.
std::string chief_of(const net::ClusterAndTask& found) {
  const net::Cluster& cluster = found.cluster;
  if (found.task.job != net::Job::kEvaluator && cluster.is_chief(found.task)) {
    return "the chief";
  }
  return "not the chief, " + net::to_string(cluster.trainer(0)) + " is";
}

std::string table_of(const net::Resolution& resolution) {
  std::vector<net::Fact> rows = {{"resolver", std::string(resolution.resolver), ""}};
  if (resolution.found) {
    rows.push_back({"task", net::to_string(resolution.found->task), chief_of(*resolution.found)});
    rows.push_back({"cluster", net::short_hex(net::hash_of(resolution.found->cluster)),
                    "its hash, the same for all tasks"});
  }
  rows.insert(rows.end(), resolution.facts.begin(), resolution.facts.end());
  for (const std::string& warning : resolution.warnings) {
    rows.push_back({"warning", warning, ""});
  }
  const auto cell = [](std::string text, std::size_t width) {
    text.resize(std::max(text.size(), width), ' ');
    return text + "  ";
  };
  static constexpr std::size_t kWhatWidth = 10;
  static constexpr std::size_t kValueWidth = 24;
  std::string text;
  for (const net::Fact& row : rows) {
    text += cell(row.what, kWhatWidth);
    text += row.from.empty() ? row.value : cell(row.value, kValueWidth) + row.from;
    text += '\n';
  }
  return text;
}

// A list; of a sparse cluster a map from index to address. Omits tasks without an address.
nlohmann::json addresses_of(const std::vector<net::Address>& addresses, bool sparse) {
  nlohmann::json out = sparse ? nlohmann::json::object() : nlohmann::json::array();
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    // Port 0 stands for a task that is not listed.
    if (addresses[i].port == 0) {
      continue;
    }
    if (sparse) {
      out[std::to_string(i)] = to_string(addresses[i]);
    } else {
      out.push_back(to_string(addresses[i]));
    }
  }
  return out;
}

// Spells `cluster` and `task` as TF_CONFIG does, so that the whole object is a TF_CONFIG.
std::string json_of(const net::Resolution& resolution) {
  nlohmann::json object = {{"resolver", resolution.resolver}, {"warnings", resolution.warnings}};
  if (resolution.found) {
    const auto& [cluster, task, warnings] = *resolution.found;
    object["task"] = {{"type", net::job_name(task.job)}, {"index", task.index}};
    object["chief"] = task.job != net::Job::kEvaluator && cluster.is_chief(task);
    object["cluster"] = {{"ps", addresses_of(cluster.ps, false)},
                         {"chief", addresses_of(cluster.chief, false)},
                         {"worker", addresses_of(cluster.workers, cluster.sparse)},
                         {"evaluator", addresses_of(cluster.evaluators, false)}};
    object["cluster_hash"] = net::short_hex(net::hash_of(cluster));
  }
  nlohmann::json& facts = object["facts"] = nlohmann::json::array();
  for (const net::Fact& fact : resolution.facts) {
    facts.push_back({{"what", fact.what}, {"value", fact.value}, {"from", fact.from}});
  }
  return data::json_text(object) + "\n";
}

}  // namespace

net::ClusterFlags cluster_flags(Command command, const Flags& flags) {
  net::ClusterFlags out;
  // launch passes a child's identity by flags. The child's environment may describe the cluster
  // that launch itself runs in, so no other resolver is tried.
  const bool is_told = flags.listen_fd >= 0 && flags.resolver == "auto";
  out.resolver = is_told ? "flags" : flags.resolver;
  out.job = job_from_flags(command, flags);
  if (flags.task_index) {
    out.task_index = static_cast<std::size_t>(*flags.task_index);
  }
  out.ps_hosts = flags.ps_hosts;
  out.worker_hosts = flags.worker_hosts;
  out.chief_host = flags.chief_host;
  out.ps = flags.cluster_ps;
  out.workers = flags.cluster_workers;
  out.chief = flags.cluster_chief;
  if (flags.max_workers != 0) {
    out.max_workers = flags.max_workers;
  }
  out.task_hosts = flags.task_hosts;
  out.port_base = flags.port_base;
  return out;
}

std::string summary(const net::Resolution& resolution) {
  const std::string start = "resolver " + std::string(resolution.resolver) + ": ";
  if (!resolution.found) {
    return start + "no cluster is described; training on this machine";
  }
  const net::Cluster& cluster = resolution.found->cluster;
  return start + "this is " + net::to_string(resolution.found->task) + " (" +
         chief_of(*resolution.found) + ") of cluster " + net::short_hex(net::hash_of(cluster)) +
         ", " + std::to_string(cluster.ps.size()) + " ps and " +
         (cluster.sparse
              ? "an unknown number of"
              : (cluster.open ? "at most " : "") + std::to_string(cluster.trainer_count())) +
         " trainers";
}

std::string resolve_text(const net::Resolution& resolution, const Flags& flags) {
  if (flags.json) {
    return json_of(resolution);
  }
  return flags.print ? table_of(resolution) : summary(resolution) + "\n";
}

net::Cluster find_lists(const Flags& flags, const net::Environment& environment) {
  net::Cluster cluster;
  // The lists come first, without a resolver: with them the environment of this process, which is
  // in no list, does not matter.
  cluster.ps = net::parse_address_list("--ps_hosts", flags.ps_hosts);
  cluster.workers = net::parse_address_list("--worker_hosts", flags.worker_hosts);
  cluster.chief = net::parse_address_list("--chief_host", flags.chief_host);
  if (cluster.ps.empty() && cluster.trainer_count() == 0) {
    const net::Resolution resolution =
        net::find_cluster(cluster_flags(Command::kPlus, flags), environment);
    if (!resolution.found) {
      throw std::invalid_argument(
          "--ps_hosts: missing; --ps_hosts and --worker_hosts, or a TF_CONFIG, say where the "
          "cluster is");
    }
    cluster = resolution.found->cluster;
  }
  // Validated as an evaluator, the one task that needs no entry in the lists.
  net::validate(cluster, {.job = net::Job::kEvaluator, .index = 0});
  // A sparse list leaves out other workers, and a driver must reach all of them.
  if (cluster.workers.empty() || cluster.sparse) {
    throw std::invalid_argument("--worker_hosts: missing; list all workers, in order");
  }
  return cluster;
}

}  // namespace disttf
