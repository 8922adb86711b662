#include "main/commands/resolution_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "data/json/json_text.h"

namespace disttf {
namespace {

// An evaluator trains nothing: is_chief() does not apply to it, as its index is in no list of
// trainers.
std::string chief_of(const net::ClusterAndTask& found) {
  const net::Cluster& cluster = found.cluster;
  if (found.task.job != net::Job::kEvaluator && cluster.is_chief(found.task)) {
    return "the chief";
  }
  return "not the chief, " + net::to_string(cluster.trainer(0)) + " is";
}

std::string table_of_facts(const net::Resolution& resolution) {
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
std::string json_of_facts(const net::Resolution& resolution) {
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

std::string resolve_text(const net::Resolution& resolution, bool has_facts, bool as_json) {
  if (as_json) {
    return json_of_facts(resolution);
  }
  return has_facts ? table_of_facts(resolution) : summary(resolution) + "\n";
}

}  // namespace disttf
