#include "net/wire/compute_request.h"

#include <string_view>
#include <utility>

#include "net/wire/codec.h"
#include "net/wire/frame.h"
#include "net/wire/text.h"

namespace disttf::net {
namespace {

constexpr std::size_t kValueBytes = 8;

[[nodiscard]] bool is_operation(std::uint8_t value) noexcept {
  return value >= static_cast<std::uint8_t>(Operation::kNumber) &&
         value <= static_cast<std::uint8_t>(Operation::kDescribe);
}

[[nodiscard]] std::size_t operands_of(Operation operation) noexcept {
  switch (operation) {
    case Operation::kAdd:
      return 2;
    case Operation::kAsk:
      return 1;
    default:
      return 0;
  }
}

}  // namespace

std::size_t expression_size(std::span<const ComputeNode> nodes) noexcept {
  std::size_t size = 0;
  // Prefix notation: each node fills one open place and opens as many as it has operands.
  for (std::size_t missing = 1; missing > 0 && size < nodes.size(); ++size) {
    missing += operands_of(nodes[size].operation);
    --missing;
  }
  return size;
}

std::vector<std::byte> encode(std::span<const ComputeNode> request) {
  ByteWriter body(request.size() * kComputeNodeBytes);
  for (const ComputeNode& node : request) {
    body.put(static_cast<std::uint8_t>(node.operation));
    body.put(static_cast<std::uint8_t>(node.task.job));
    body.put(std::uint16_t{0});
    body.put(static_cast<std::uint32_t>(node.task.index));
    body.put(static_cast<std::uint64_t>(node.value));
  }
  return std::move(body).take();
}

std::vector<std::byte> encode(const ComputeResult& result) {
  const std::string_view text = cut_utf8(result.text, kMaxResultTextBytes);
  ByteWriter body(kValueBytes + text.size());
  body.put(static_cast<std::uint64_t>(result.value));
  body.put_bytes(std::as_bytes(std::span(text)));
  return std::move(body).take();
}

std::error_code decode(std::span<const std::byte> body, ComputeRequest& out) {
  // The size bounds the loop below: a truncated body makes the reader fail, and longer ones end
  // here.
  if (body.size() % kComputeNodeBytes != 0 || body.size() > kMaxComputeNodes * kComputeNodeBytes) {
    return WireError::kBadBody;
  }
  ByteReader reader(body);
  ComputeRequest request;
  std::size_t missing = 1;  // expressions
  // Each node fills one place and opens as many as it has operands; the body ends when none is
  // open.
  while (missing > 0) {
    const auto operation = reader.get<std::uint8_t>();
    const auto job = reader.get<std::uint8_t>();
    const auto reserved = reader.get<std::uint16_t>();
    const auto index = reader.get<std::uint32_t>();
    const auto value = reader.get<std::uint64_t>();
    if (!reader.ok() || !is_operation(operation) || !is_job(job) || reserved != 0) {
      return WireError::kBadBody;
    }
    const ComputeNode node{.operation = static_cast<Operation>(operation),
                           .task = {.job = static_cast<Job>(job), .index = index},
                           .value = static_cast<std::int64_t>(value)};
    if (node.operation != Operation::kNumber && value != 0) {
      return WireError::kBadBody;
    }
    missing += operands_of(node.operation);
    --missing;
    request.push_back(node);
  }
  // Bytes after the expression would be ignored by one version and read by another.
  if (!reader.complete()) {
    return WireError::kBadBody;
  }
  out = std::move(request);
  return {};
}

std::error_code decode(std::span<const std::byte> body, ComputeResult& out) {
  ByteReader reader(body);
  const auto value = reader.get<std::uint64_t>();
  if (!reader.ok() || reader.rest().size() > kMaxResultTextBytes) {
    return WireError::kBadBody;
  }
  const auto* const text = reinterpret_cast<const char*>(reader.rest().data());
  out = ComputeResult{.value = static_cast<std::int64_t>(value),
                      .text = one_line(std::string_view(text, reader.rest().size()))};
  return {};
}

}  // namespace disttf::net
