#include "main/verify/verify_report.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "data/json/json_text.h"
#include "net/wire/text.h"

namespace disttf::roles {
namespace {

// In the order of VerifyCheck::Result.
constexpr std::array<std::string_view, 3> kResultWords = {"ok", "FAILED", "left out"};
constexpr std::array<std::string_view, 3> kResultNames = {"ok", "failed", "left out"};

}  // namespace

bool VerifyReport::is_ok() const noexcept {
  return std::ranges::all_of(
      checks, [](const VerifyCheck& check) { return check.result == VerifyCheck::Result::kOk; });
}

std::string to_text(const VerifyCheck& check) {
  return std::string(kResultWords.at(static_cast<std::size_t>(check.result))) + ": " + check.name +
         ": " + net::one_line(check.text);
}

std::string to_json(const VerifyReport& report) {
  using Json = nlohmann::ordered_json;
  Json fingerprint = Json::object();
  for (const auto& [key, value] : report.fingerprint) {
    fingerprint[key] = value;
  }
  Json checks = Json::array();
  for (const VerifyCheck& check : report.checks) {
    checks.push_back({{"check", check.name},
                      {"result", kResultNames.at(static_cast<std::size_t>(check.result))},
                      {"text", check.text}});
  }
  const Json object = {{"ok", report.is_ok()},
                       {"variables", report.variables},
                       {"parameters", report.parameters},
                       {"client", report.client},
                       {"fingerprint", std::move(fingerprint)},
                       {"checks", std::move(checks)}};
  return data::json_text(object);
}

std::string facts_text(const VerifyReport& report) {
  const auto count_text = [](std::size_t count, const char* noun) {
    return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
  };
  std::string text =
      count_text(report.variables, "variable") + ", " + count_text(report.parameters, "parameter");
  text += report.client.empty() ? ", a client without a name" : ", client " + report.client;
  text += report.fingerprint.empty() ? ", no fingerprint" : ", fingerprint";
  for (const auto& [key, value] : report.fingerprint) {
    text += std::string(&key == &report.fingerprint.front().first ? " " : ", ") + key + " " + value;
  }
  return text;
}

}  // namespace disttf::roles
