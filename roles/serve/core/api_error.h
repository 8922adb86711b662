// A request's error as the APIs report it: a status and one sentence.
#pragma once

#include <stdexcept>
#include <string>

namespace disttf::roles {

class ApiError : public std::runtime_error {
 public:
  ApiError(int status, const std::string& sentence)
      : std::runtime_error(sentence), status_(status) {}
  [[nodiscard]] int status() const noexcept { return status_; }

 private:
  int status_;
};

// The request is malformed, or does not fit the model.
class BadRequest : public ApiError {
 public:
  explicit BadRequest(const std::string& sentence) : ApiError(400, sentence) {}
};

}  // namespace disttf::roles
