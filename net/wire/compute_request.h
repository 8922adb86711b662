// The bodies of COMPUTE and RESULT: an expression for a server to compute, and its result.
//
//   COMPUTE: 1 to 64 nodes of 16 bytes        RESULT: 8 bytes and more
//    0  1  operation                         0  8  value, two's complement
//    1  1  job    of the task that does it   8  n  text, UTF-8, n <= 4096
//    2  2  reserved, 0
//    4  4  index
//    8  8  value  of NUMBER, two's complement; of others 0
//
// An order is an expression in prefix order: a node, then its operands. Integers are little-endian.
// The decoders take untrusted bytes: another length, operation or job, or a wrong number of
// operands, is WireError::kBadBody, and `out` is then untouched. Pure functions; callable from any
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "net/wire/cluster.h"

namespace disttf::net {

inline constexpr std::size_t kComputeNodeBytes = 16;
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
  std::int64_t value = 0;
  friend bool operator==(const ComputeNode&, const ComputeNode&) = default;
};
using ComputeRequest = std::vector<ComputeNode>;

struct ComputeResult {
  std::int64_t value = 0;
  std::string text = {};  // encoding truncates it, decoding makes it safe to log
  friend bool operator==(const ComputeResult&, const ComputeResult&) = default;
};

// Returns the number of nodes of the first expression in `nodes`, including its operands. REQUIRES:
// the expression is complete, as decode() guarantees.
[[nodiscard]] std::size_t expression_size(std::span<const ComputeNode> nodes) noexcept;

[[nodiscard]] std::vector<std::byte> encode(std::span<const ComputeNode> request);
[[nodiscard]] std::vector<std::byte> encode(const ComputeResult& result);
[[nodiscard]] std::error_code decode(std::span<const std::byte> body, ComputeRequest& out);
[[nodiscard]] std::error_code decode(std::span<const std::byte> body, ComputeResult& out);

}  // namespace disttf::net
