#include "net/wire/server_requests.h"

#include <utility>

namespace disttf::net {
namespace {

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
  BodyWriter fields(request.size() * kBodyBytes<ComputeNode>);
  for (const ComputeNode& node : request) ComputeNode::fields_of_body(fields, node);
  return std::move(fields).take();
}

std::error_code decode(std::span<const std::byte> body, ComputeRequest& out) {
  // The size bounds the loop below: a truncated body makes the reader fail, and longer ones end
  // here.
  if (body.size() > kMaxComputeNodes * kBodyBytes<ComputeNode>) return WireError::kBadBody;
  BodyReader fields(body);
  ComputeRequest request;
  // Each node fills one open place and opens as many as it has operands.
  for (std::size_t missing = 1; missing > 0 && fields.ok(); --missing) {
    ComputeNode& node = request.emplace_back();
    ComputeNode::fields_of_body(fields, node);
    missing += operands_of(node.operation);
  }
  // Bytes after the expression would be ignored by one version and read by another.
  if (!fields.complete()) return WireError::kBadBody;
  out = std::move(request);
  return {};
}

}  // namespace disttf::net
