// What `disttf server` is asked for: to compute an expression, and to run a task.
//
// The bodies of COMPUTE and RESULT: an expression for a server to compute, and its result.
// An order is an expression in prefix order: a node, then its operands; a wrong number of operands
// is WireError::kBadBody. encode() and decode() of a result: net/wire/body_fields.h.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "net/wire/body_fields.h"
#include "net/wire/cluster.h"

namespace disttf::net {

inline constexpr std::size_t kMaxComputeNodes = 64;
inline constexpr std::size_t kMaxResultTextBytes = 4096;

enum class Operation : std::uint8_t {
  kNumber = 1,    // no operand: the node's value
  kAdd = 2,       // two operands: their sum modulo 2^64
  kAsk = 3,       // one operand: its result, as this task receives it
  kDescribe = 4,  // no operand: the text describes the task's program
};

struct ComputeNode {
  Operation operation = Operation::kNumber;
  TaskId task;
  std::int64_t value = 0;  // of others than kNumber 0

  template <typename Fields, typename Self>
  static constexpr void fields_of_body(Fields& fields, Self& self) {
    fields.u8("operation", self.operation, Operation::kNumber, Operation::kDescribe);
    fields.u8("job", self.task.job, Job::kPs, Job::kEvaluator);
    fields.reserved(2);
    fields.u32("index", self.task.index);
    fields.u64("value", self.value);
    fields.require(self.operation == Operation::kNumber || self.value == 0);
  }
  friend bool operator==(const ComputeNode&, const ComputeNode&) = default;
};
using ComputeRequest = std::vector<ComputeNode>;

struct ComputeResult {
  std::int64_t value = 0;
  std::string text = {};

  template <typename Fields, typename Self>
  static constexpr void fields_of_body(Fields& fields, Self& self) {
    fields.u64("value", self.value);
    fields.text("text", self.text, kMaxResultTextBytes);
  }
  friend bool operator==(const ComputeResult&, const ComputeResult&) = default;
};

// Returns the number of nodes of the first expression in `nodes`, including its operands. REQUIRES:
// the expression is complete, as decode() guarantees.
[[nodiscard]] std::size_t expression_size(std::span<const ComputeNode> nodes) noexcept;

[[nodiscard]] std::vector<std::byte> encode(std::span<const ComputeNode> request);
[[nodiscard]] std::error_code decode(std::span<const std::byte> body, ComputeRequest& out);

// The bodies of RUN_TASK and TASK_ENDED: how a driver process makes servers train.
//
// The server's own lists and driven() define the run's cluster. A worker receives from ps 0 what is
// trained, and how. Nothing here names a program, a command-line argument, a host or a file.
// encode() and decode(): net/wire/body_fields.h.
inline constexpr std::chrono::seconds kLongestRequestedTimeout{86'400};
inline constexpr std::size_t kMaxLastLineBytes = 4096;

// The value of RunTaskRequest::data that leaves the choice to the server.
inline constexpr std::uint8_t kAnyData = 1;

struct RunTaskRequest {
  // Each from 1 s to kLongestRequestedTimeout.
  std::chrono::seconds start{1};
  std::chrono::seconds peer{1};
  std::chrono::seconds worker{1};
  std::chrono::seconds heartbeat_timeout{1};
  std::uint8_t data = kAnyData;  // never 0; storage/download/datasets.h has the numbers

  template <typename Fields, typename Self>
  static constexpr void fields_of_body(Fields& fields, Self& self) {
    fields.u32("start timeout", self.start, 1, kLongestRequestedTimeout);
    fields.u32("peer timeout", self.peer, 1, kLongestRequestedTimeout);
    fields.u32("worker timeout", self.worker, 1, kLongestRequestedTimeout);
    fields.u32("heartbeat timeout", self.heartbeat_timeout, 1, kLongestRequestedTimeout);
    fields.u8("data set", self.data, 1, 255);
    fields.reserved(3);
  }
  friend bool operator==(const RunTaskRequest&, const RunTaskRequest&) = default;
};

struct TaskEnd {
  std::uint8_t exit_code = 0;
  std::uint8_t signal = 0;
  std::string last_line = {};  // of its log

  template <typename Fields, typename Self>
  static constexpr void fields_of_body(Fields& fields, Self& self) {
    fields.u32("exit code", self.exit_code, 0, 255);
    fields.u32("signal", self.signal, 0, 64);
    fields.text("last line", self.last_line, kMaxLastLineBytes);
  }
  friend bool operator==(const TaskEnd&, const TaskEnd&) = default;
};

}  // namespace disttf::net
