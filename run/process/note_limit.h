// Limits how often peers can make a task log the same message. Otherwise a member of the run that
// connects again and again, or sends invalid frames, would fill the disk of the log.
//
// For each peer and kind of message the first kBurst are written, then one a second, with the
// number of suppressed ones before it. Not thread-safe.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace disttf::roles {

class NoteLimit {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Messages of one peer and kind that are written at once: more than an undisturbed run, or one
  // whose tasks are killed again and again, logs within a minute.
  static constexpr std::uint64_t kBurst = 30;
  static constexpr std::chrono::seconds kInterval{1};
  // Peers and kinds that are distinguished. If there are more, the counts are reset.
  static constexpr std::size_t kMostKinds = 4096;

  // Returns the message as it is to be written, or nullopt if it is suppressed.
  [[nodiscard]] std::optional<std::string> admit(std::string_view sentence, Time now);

  // Returns what messages of one peer and kind have in common: the message up to a colon and a
  // blank, without what is in parentheses and without all numbers but the first. "refused worker 1"
  // for "refused worker 1 (10.0.0.7:2222): malformed frame".
  [[nodiscard]] static std::string kind_of(std::string_view sentence);

 private:
  struct Count {
    std::uint64_t left = kBurst;
    std::uint64_t suppressed = 0;
    Time refilled;
  };
  std::unordered_map<std::string, Count> counts_;
};

inline std::string NoteLimit::kind_of(std::string_view sentence) {
  const auto is_digit = [](char c) { return '0' <= c && c <= '9'; };
  std::string kind;
  int depth = 0;
  int numbers = 0;
  bool in_number = false;
  for (std::size_t at = 0; at < sentence.size(); ++at) {
    const char c = sentence[at];
    if (depth == 0 && sentence.substr(at, 2) == ": ") break;
    if (c == '(') ++depth;
    if (depth == 0) {
      if (is_digit(c) && !in_number) ++numbers;
      in_number = is_digit(c);
      if (!in_number || numbers == 1) kind += c;
    }
    if (c == ')' && depth > 0) --depth;
  }
  return kind;
}

inline std::optional<std::string> NoteLimit::admit(std::string_view sentence, Time now) {
  if (counts_.size() >= kMostKinds) counts_.clear();
  Count& count = counts_.try_emplace(kind_of(sentence), Count{.refilled = now}).first->second;
  const auto intervals = static_cast<std::uint64_t>((now - count.refilled) / kInterval);
  if (intervals > 0) {
    count.left = std::min(kBurst, count.left + intervals);
    count.refilled = now;
  }
  if (count.left == 0) {
    ++count.suppressed;
    return std::nullopt;
  }
  --count.left;
  std::string text(sentence);
  if (count.suppressed != 0) {
    text += " (" + std::to_string(count.suppressed) + " more messages like this were suppressed)";
    count.suppressed = 0;
  }
  return text;
}

}  // namespace disttf::roles
