// What `disttf verify` has found: one line for each check, or one JSON object.
//
// Values and pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace disttf::roles {

struct VerifyCheck {
  enum class Result : std::uint8_t {
    kOk,
    kFailed,
    kLeftOut,  // it needs what checks before it have not found
  };
  std::string name;  // never changes: "second process"
  Result result = Result::kOk;
  std::string text;  // without a full stop; kFailed: the reason
};

struct VerifyReport {
  // Of the first process; set once it has told its variables.
  std::string client;
  std::vector<std::pair<std::string, std::string>> fingerprint;
  std::size_t variables = 0;
  std::size_t parameters = 0;
  std::vector<VerifyCheck> checks;

  [[nodiscard]] bool is_ok() const noexcept;
};

// "ok: end: exits with 0", "FAILED: end: the program exited with 3".
[[nodiscard]] std::string to_text(const VerifyCheck& check);
// {"ok":true,"variables":2,"parameters":15,"client":"...","fingerprint":{...},"checks":[
// {"check":"end","result":"ok","text":"..."}]}
[[nodiscard]] std::string to_json(const VerifyReport& report);

// "2 variables, 15 parameters, client python 1.0, fingerprint torch 2.9, threads 1"
[[nodiscard]] std::string facts_text(const VerifyReport& report);

}  // namespace disttf::roles
