#include "roles/doctor/core/finding.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

#include "data/json/json_text.h"

namespace disttf::roles {
namespace {

constexpr std::array<std::string_view, 3> kGrades = {"good", "lacking", "bad"};

// The number that the text begins with, up to a blank or the end of a line.
std::optional<std::uint64_t> leading_number(std::string_view text, std::size_t& used) noexcept {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  used = static_cast<std::size_t>(end - text.data());
  const bool is_ended = used == text.size() || text[used] == ' ' || text[used] == '\n';
  return error == std::errc{} && is_ended ? std::optional(number) : std::nullopt;
}

}  // namespace

std::string_view grade_name(Finding::Grade grade) noexcept {
  return kGrades.at(static_cast<std::size_t>(grade));
}

std::string to_text(std::span<const Finding> findings) {
  std::size_t widest = 0;
  for (const Finding& finding : findings) {
    widest = std::max(widest, finding.subject.size());
  }
  std::string text;
  for (const Finding& finding : findings) {
    text += fmt::format("{}{:<{}}  {:<7}  {}", text.empty() ? "" : "\n", finding.subject, widest,
                        grade_name(finding.grade), finding.text);
  }
  return text;
}

std::string to_json(std::span<const Finding> findings) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    all.push_back({{"subject", finding.subject},
                   {"grade", grade_name(finding.grade)},
                   {"text", finding.text}});
  }
  const nlohmann::ordered_json object = {{"well", exit_code_of(findings) == kDone},
                                         {"findings", std::move(all)}};
  // What a file of the machine says need not be UTF-8.
  return data::json_text(object);
}

ExitCode exit_code_of(std::span<const Finding> findings) noexcept {
  const auto bad = std::ranges::find(findings, Finding::Grade::kBad, &Finding::grade);
  return bad == findings.end() ? kDone : bad->exit_code;
}

std::optional<std::uint64_t> memory_limit(std::string_view text) noexcept {
  std::size_t used = 0;
  return leading_number(text, used);
}

std::optional<std::string> group_path(std::string_view proc_cgroup) {
  constexpr std::string_view kSecond = "0::";
  while (!proc_cgroup.empty()) {
    const std::string_view line = proc_cgroup.substr(0, proc_cgroup.find('\n'));
    if (line.starts_with(kSecond)) {
      return std::string(line.substr(kSecond.size()));
    }
    proc_cgroup.remove_prefix(std::min(line.size() + 1, proc_cgroup.size()));
  }
  return std::nullopt;
}

std::optional<double> processor_limit(std::string_view text) noexcept {
  std::size_t used = 0;
  const auto quota = leading_number(text, used);
  if (!quota || used >= text.size()) {
    return std::nullopt;
  }
  text.remove_prefix(used + 1);
  const auto period = leading_number(text, used);
  if (!period || *period == 0) {
    return std::nullopt;
  }
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

}  // namespace disttf::roles
