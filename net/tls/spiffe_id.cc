#include "net/tls/spiffe_id.h"

#include <algorithm>
#include <charconv>

namespace disttf::net {
namespace {

constexpr std::string_view kScheme = "spiffe://";
constexpr std::string_view kSeparators = "/-";
// No cluster has indexes with more digits.
constexpr std::size_t kMostIndexDigits = 9;

constexpr bool is_lower_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

constexpr bool may_be_in_domain(char c) {
  return is_lower_or_digit(c) || c == '.' || c == '-' || c == '_';
}

constexpr bool may_be_in_path(char c) { return may_be_in_domain(c) || (c >= 'A' && c <= 'Z'); }

// "/a/b": no segment is empty or navigates (. or ..).
bool is_path(std::string_view path) {
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/', 1), path.size());
    const std::string_view segment = path.substr(1, end - 1);
    if (segment.empty() || segment == "." || segment == ".." ||
        !std::ranges::all_of(segment, may_be_in_path)) {
      return false;
    }
    path.remove_prefix(end);
  }
  return true;
}

// Removes the last word and the separator before it, and returns the word. REQUIRES: there is a
// separator.
std::string_view take_last(std::string_view& text) {
  const std::size_t at = text.find_last_of(kSeparators);
  const std::string_view word = text.substr(at + 1);
  text = text.substr(0, at);
  return word;
}

// Decimal, as to_string() writes it. "01" and "1" would be two names of one task.
std::optional<std::size_t> parse_index(std::string_view word) {
  std::size_t index = 0;
  const char* const end = word.data() + word.size();
  const bool is_canonical =
      word == "0" || (word.size() <= kMostIndexDigits && !word.starts_with('0'));
  const auto [stop, error] = std::from_chars(word.data(), end, index);
  return is_canonical && stop == end && error == std::errc() ? std::optional(index) : std::nullopt;
}

std::optional<Job> parse_job(std::string_view word) {
  for (const Job job : {Job::kPs, Job::kWorker, Job::kChief, Job::kEvaluator}) {
    if (word == job_name(job)) return job;
  }
  return std::nullopt;
}

}  // namespace

std::optional<SpiffeId> parse_spiffe_id(std::string_view uri) {
  if (uri.size() > kMostSpiffeIdBytes || !uri.starts_with(kScheme)) return std::nullopt;
  const std::size_t path = std::min(uri.find('/', kScheme.size()), uri.size());
  const std::string_view domain = uri.substr(kScheme.size(), path - kScheme.size());
  if (domain.empty() || !std::ranges::all_of(domain, may_be_in_domain) ||
      !is_path(uri.substr(path)) || path == uri.size()) {
    return std::nullopt;
  }
  SpiffeId id;
  // Searches separators in the path only: a domain may contain hyphens.
  std::string_view rest = uri.substr(path);
  std::string_view word = take_last(rest);
  id.index = parse_index(word);
  if (id.index) {
    if (rest.empty()) return std::nullopt;
    word = take_last(rest);
  }
  const std::optional<Job> job = parse_job(word);
  // Exactly one separator precedes the job, and the part before it is a valid path.
  const bool is_run = rest.empty() || (!rest.ends_with('-') && is_path(rest));
  if (!job || !is_run) return std::nullopt;
  id.job = *job;
  id.run = std::string(uri.substr(0, path)) + std::string(rest);
  return id;
}

}  // namespace disttf::net
