// --access_log: a line of JSON for each answer. Each thread has its own object, for one shared
// file, and writes the lines of one turn at once.
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

// The facts of an answer that its request does not contain.
struct AnswerFacts {
  int status = 0;
  std::size_t bytes = 0;
  std::optional<double> milliseconds = {};  // of a request that was received completely
  std::size_t rows = 0;                     // 0: no model was used
  std::uint64_t version = 0;
};

// Opens the file for appending. Throws std::system_error.
[[nodiscard]] std::shared_ptr<const data::FileDescriptor> open_access_log(const std::string& path);

class AccessLog {
 public:
  // `file`: nullptr: writes nothing.
  explicit AccessLog(std::shared_ptr<const data::FileDescriptor> file) : file_(std::move(file)) {}

  void add(const net::HttpExchange& exchange, const AnswerFacts& facts);
  // Writes the lines added since the last call. A full disk loses lines, but ends nothing.
  void write() noexcept;

 private:
  std::shared_ptr<const data::FileDescriptor> file_;
  std::string lines_;
};

}  // namespace disttf::roles
