#include "roles/launch/shell/program_command.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <utility>

#include "data/json/json_text.h"
#include "net/wire/text.h"
#include "roles/launch/shell/child_process.h"

namespace disttf::roles {
namespace {

using Placeholder = std::pair<std::string_view, std::string>;  // name, value
using Placeholders = std::array<Placeholder, 4>;

Placeholders placeholders_of(const net::Cluster& cluster, const net::TaskId& task) {
  return {Placeholder{"ps_hosts", net::to_string(cluster.ps)},
          {"worker_hosts", net::to_string(cluster.workers)},
          {"job_name", std::string(net::job_name(task.job))},
          {"task_index", std::to_string(task.index)}};
}

[[noreturn]] void fail(std::string_view field, std::string_view word, const std::string& what) {
  throw std::invalid_argument(std::string(field) + ": " + what + " in " + net::quoted(word) +
                              "; allowed are {ps_hosts}, {worker_hosts}, {job_name}, {task_index}, "
                              "and {{ and }} for single braces");
}

std::string fill(std::string_view field, std::string_view word, const Placeholders& placeholders) {
  std::string filled;
  for (std::size_t at = 0; at < word.size(); ++at) {
    const char c = word[at];
    if (c != '{' && c != '}') {
      filled += c;
      continue;
    }
    // "{{" and "}}" stand for single braces.
    // Before the search for a name, so that "{{" never begins a placeholder.
    if (at + 1 < word.size() && word[at + 1] == c) {
      filled += c;
      ++at;
      continue;
    }
    const std::size_t end = word.find('}', at);
    if (c == '}' || end == std::string_view::npos) {
      fail(field, word, std::string("a single ") + c);
    }
    const std::string_view name = word.substr(at + 1, end - at - 1);
    const auto* const found =
        std::find_if(placeholders.begin(), placeholders.end(),
                     [name](const Placeholder& each) { return each.first == name; });
    if (found == placeholders.end()) {
      fail(field, word, net::quoted("{" + std::string(name) + "}"));
    }
    filled += found->second;
    // Continues behind the value: braces in a value are not expanded again.
    at = end;
  }
  return filled;
}

std::string tf_config(const net::Cluster& cluster, const net::TaskId& task) {
  nlohmann::json config;
  for (const net::Job job : {net::Job::kPs, net::Job::kChief, net::Job::kWorker}) {
    for (const net::Address& address : cluster.tasks_of(job)) {
      config["cluster"][std::string(net::job_name(job))].push_back(net::to_string(address));
    }
  }
  config["task"] = {{"type", std::string(net::job_name(task.job))}, {"index", task.index}};
  return data::json_text(config);
}

}  // namespace

std::vector<std::string> split_words(std::string_view field, std::string_view text) {
  constexpr char kNone = '\0';
  std::vector<std::string> words;
  char quote = kNone;
  bool in_word = false;
  for (const char c : text) {
    if (quote == kNone && (c == ' ' || c == '\t' || c == '\n')) {
      in_word = false;
      continue;
    }
    // At a quote as well: '' is an empty word.
    if (!in_word) {
      words.emplace_back();
      in_word = true;
    }
    if (c == quote) {
      quote = kNone;
    } else if (quote == kNone && (c == '"' || c == '\'')) {
      quote = c;
    } else {
      words.back() += c;
    }
  }
  // No backslash escapes: a word with both kinds of quotes can be joined from two quoted parts.
  if (quote != kNone) {
    throw std::invalid_argument(std::string(field) + ": " + net::quoted(text) +
                                " has an unterminated quote");
  }
  if (words.empty() || words.front().empty()) {
    throw std::invalid_argument(std::string(field) + ": " + net::quoted(text) +
                                " names no program");
  }
  return words;
}

std::vector<std::string> fill_placeholders(std::string_view field,
                                           const std::vector<std::string>& words,
                                           const net::Cluster& cluster, const net::TaskId& task) {
  const Placeholders placeholders = placeholders_of(cluster, task);
  std::vector<std::string> filled;
  filled.reserve(words.size());
  for (const std::string& word : words) {
    filled.push_back(fill(field, word, placeholders));
  }
  return filled;
}

Program find_command(std::string_view field, const std::vector<std::string>& words,
                     const net::Cluster& cluster, const net::TaskId& task,
                     std::string_view search_path) {
  if (words.empty()) {
    return {};
  }
  std::vector<std::string> filled = fill_placeholders(field, words, cluster, task);
  // Searched here and not by the child, so that a missing program is an error of usage before any
  // task starts.
  const std::optional<std::string> file = find_program(filled.front(), search_path);
  if (!file) {
    throw std::invalid_argument(
        std::string(field) + ": " + net::quoted(filled.front()) + " is not an executable program" +
        (filled.front().find('/') == std::string::npos ? "; it is not in PATH" : ""));
  }
  return {.file = *file, .words = std::move(filled)};
}

std::vector<std::string> task_variables(const net::Cluster& cluster, const net::TaskId& task) {
  // PYTHONUNBUFFERED: Python buffers what it writes to a pipe; its lines would appear late.
  return {"TF_CONFIG=" + tf_config(cluster, task),
          "TFMESOS_PS_HOSTS=" + net::to_string(cluster.ps),
          "TFMESOS_WORKER_HOSTS=" + net::to_string(cluster.workers),
          "TFMESOS_JOB_NAME=" + std::string(net::job_name(task.job)),
          "TFMESOS_TASK_INDEX=" + std::to_string(task.index),
          "TFMESOS_DISTRIBUTED=1",
          "PYTHONUNBUFFERED=1"};
}

}  // namespace disttf::roles
