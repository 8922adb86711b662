// The bodies of COMPUTE and RESULT: an expression for a server to compute, and its result.
// An order is an expression in prefix order: a node, then its operands; a wrong number of operands
// is WireError::kBadBody. encode() and decode() of a result: net/wire/body_fields.h.
#pragma once

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

}  // namespace disttf::net
