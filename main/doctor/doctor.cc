#include "main/doctor/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "data/json/json_text.h"
#include "main/doctor/checks.h"
#include "run/process/log.h"

namespace disttf::roles {

int run_doctor(const DoctorOptions& options) {
  std::vector<Finding> findings = {
      check_kernel(),
      check_seccomp(),
      check_no_new_privileges(),
      check_landlock(),
      check_core_dumps(),
      check_shared_memory(),
      check_descriptors(),
      check_processor(),
      check_processors(),
      check_memory(),
      check_clock(),
      check_authorities(),
      check_gpus(options.environment),
  };
  // Only on request: a running task may hold the port rightfully.
  if (options.port) {
    findings.push_back(check_port(*options.port));
  }
  print_result(options.as_json ? to_json(findings) : to_text(findings));
  return exit_code_of(findings);
}

namespace {

// In the order of Finding::Grade.
constexpr std::array<std::string_view, 3> kGrades = {"good", "lacking", "bad"};

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
  // Lacking things do not make it false: a task runs without them.
  const nlohmann::ordered_json object = {{"well", exit_code_of(findings) == kDone},
                                         {"findings", std::move(all)}};
  // Texts from files of the machine need not be UTF-8; json_text() replaces what is not.
  return data::json_text(object);
}

ExitCode exit_code_of(std::span<const Finding> findings) noexcept {
  const auto bad = std::ranges::find(findings, Finding::Grade::kBad, &Finding::grade);
  return bad == findings.end() ? kDone : bad->exit_code;
}

}  // namespace disttf::roles
