#include "net/resolvers/task_hosts.h"

#include <cassert>
#include <limits>
#include <stdexcept>

#include "net/wire/text.h"

namespace disttf::net {
namespace {

constexpr std::string_view kFlag = "--task_hosts";
// Limits the text that a message or log line repeats.
constexpr std::size_t kMaxPatternBytes = 512;

[[noreturn]] void fail_pattern(std::string_view pattern, const std::string& sentence) {
  throw std::invalid_argument(std::string(kFlag) + ": " + net::quoted(pattern) + " " + sentence);
}

// The values of a pattern's words for one task.
struct Place {
  TaskId task;
  std::size_t position;
  std::size_t port;
  const std::string* host;  // nullptr: unknown
};

[[nodiscard]] std::string value_of(std::string_view pattern, std::string_view word,
                                   const Place& at) {
  if (word == "job") return std::string(job_name(at.task.job));
  if (word == "index") return std::to_string(at.task.index);
  if (word == "place") return std::to_string(at.position);
  if (word == "port") return std::to_string(at.port);
  if (word == "host") {
    if (at.host == nullptr) fail_pattern(pattern, "has {host}, which only Slurm provides");
    return *at.host;
  }
  fail_pattern(pattern, "has " + net::quoted(word) +
                            " in braces; job, index, place, port and host are known");
}

[[nodiscard]] std::string filled(std::string_view pattern, const Place& at) {
  std::string text;
  std::string_view rest = pattern;
  while (true) {
    const std::size_t open = rest.find_first_of("{}");
    text += rest.substr(0, open);
    if (open == std::string_view::npos) return text;
    const std::size_t shut = rest.find_first_of("{}", open + 1);
    // Nested and unmatched braces are errors, because a literal brace cannot be part of an address.
    if (rest[open] == '}' || shut == std::string_view::npos || rest[shut] == '{') {
      fail_pattern(pattern, "has a brace without its partner");
    }
    text += value_of(pattern, rest.substr(open + 1, shut - open - 1), at);
    rest.remove_prefix(shut + 1);
  }
}

// Rejects patterns that give two tasks the same address.
void check_words(std::string_view pattern, const TaskCounts& counts) {
  const auto has = [&](std::string_view word) { return has_word(pattern, word); };
  // The rank and the port differ for every task, so either of them makes addresses unique.
  if (counts.total() < 2 || has("place") || has("port")) return;
  if (!has("host") && !has("job")) {
    fail_pattern(pattern,
                 "gives a ps and a worker one address; {job}, {place} or {port} is missing");
  }
  // Patterns with {host} are not judged here: hosts may repeat, and validate() finds equal
  // addresses.
  if (!has("host") && !has("index") && (counts.ps > 1 || counts.workers > 1)) {
    fail_pattern(pattern,
                 "gives tasks of one job one address; {index}, {place} or {port} is missing");
  }
}

}  // namespace

std::size_t TaskCounts::of(Job job) const noexcept {
  switch (job) {
    case Job::kPs:
      return ps;
    case Job::kChief:
      return chief ? 1 : 0;
    case Job::kWorker:
      return workers;
    case Job::kEvaluator:
      break;
  }
  return 0;
}

TaskId task_at(const TaskCounts& counts, std::size_t position) {
  assert(position < counts.total());
  if (position < counts.ps) return {Job::kPs, position};
  position -= counts.ps;
  if (counts.chief) {
    if (position == 0) return {Job::kChief, 0};
    --position;
  }
  return {Job::kWorker, position};
}

bool has_word(std::string_view pattern, std::string_view name) {
  return pattern.find("{" + std::string(name) + "}") != std::string_view::npos;
}

Cluster cluster_from_pattern(std::string_view pattern, const TaskCounts& counts,
                             const PatternValues& values) {
  if (pattern.size() > kMaxPatternBytes) {
    fail_pattern(pattern, "has " + std::to_string(pattern.size()) + " bytes; at most " +
                              std::to_string(kMaxPatternBytes) + " are allowed");
  }
  assert(values.hosts.empty() || values.hosts.size() == counts.total());
  check_words(pattern, counts);
  static constexpr std::size_t kMostPort = std::numeric_limits<std::uint16_t>::max();
  // Checked before the addresses are generated, because a port above 65535 would appear as a
  // misleading error of one task.
  if (has_word(pattern, "port") && values.port_base + counts.total() > kMostPort + 1) {
    throw std::invalid_argument("--port_base: " + std::to_string(values.port_base) + " and " +
                                std::to_string(counts.total()) +
                                " tasks lead beyond the last port, 65535");
  }
  Cluster cluster;
  for (std::size_t position = 0; position < counts.total(); ++position) {
    const TaskId task = task_at(counts, position);
    const std::string* host = values.hosts.empty() ? nullptr : &values.hosts[position];
    // Parsed like an address from a flag, because a pattern may produce anything.
    const Address address =
        parse_address(kFlag, filled(pattern, {task, position, values.port_base + position, host}));
    std::vector<Address>& list = task.job == Job::kPs      ? cluster.ps
                                 : task.job == Job::kChief ? cluster.chief
                                                           : cluster.workers;
    list.push_back(address);
  }
  return cluster;
}

}  // namespace disttf::net
