// --access_log: a line of JSON for each answer. Each thread has its own, of one file; a turn's
// lines are written at once.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "data/file.h"
#include "net/http/http_service.h"

namespace disttf::roles {

// What is known of an answer beside its request.
struct AnswerFacts {
  int status = 0;
  std::size_t bytes = 0;
  std::optional<double> milliseconds = {};  // of a request that had come whole
  std::size_t rows = 0;                     // 0: the model was not asked
  std::uint64_t version = 0;
};

// Opens it, to go on at its end. Throws std::system_error.
[[nodiscard]] std::shared_ptr<const data::FileDescriptor> open_access_log(const std::string& path);

class AccessLog {
 public:
  // `file`: nullptr: nothing is written.
  explicit AccessLog(std::shared_ptr<const data::FileDescriptor> file) : file_(std::move(file)) {}

  void add(const net::HttpExchange& exchange, const AnswerFacts& facts);
  // What was added since the last call. A disk that is full loses lines, and ends nothing.
  void write() noexcept;

 private:
  std::shared_ptr<const data::FileDescriptor> file_;
  std::string lines_;
};

}  // namespace disttf::roles
