#include "data/tensorboard/graph.h"

#include "data/protobuf.h"

namespace disttf::data {
namespace {

// AttrValue: s 2, text; or list 1 {shape 7 {dim 2 {size 1}}}.
ProtobufMessage shapes(std::span<const std::int64_t> shape) {
  ProtobufMessage sizes;
  for (const std::int64_t size : shape) {
    sizes.add_message(2, ProtobufMessage().add_number(1, static_cast<std::uint64_t>(size)));
  }
  return ProtobufMessage().add_message(1, ProtobufMessage().add_message(7, sizes));
}

// attr 5, a map: {key 1, value 2}
void add_attribute(ProtobufMessage& node, std::string_view name, const ProtobufMessage& value) {
  node.add_message(5, ProtobufMessage().add_bytes(1, name).add_message(2, value));
}

}  // namespace

// node 1 {name 1, op 2, input 3, device 4, attr 5}, versions 4 {producer 1}
std::string graph_def(std::span<const GraphNode> nodes) {
  constexpr std::uint64_t kProducer = 22;  // TensorFlow 1's version; readers accept any
  ProtobufMessage graph;
  for (const GraphNode& each : nodes) {
    ProtobufMessage node;
    node.add_bytes(1, each.name).add_bytes(2, each.op);
    for (const std::string& input : each.inputs) {
      node.add_bytes(3, input);
    }
    node.add_bytes(4, each.device);
    add_attribute(node, "_output_shapes", shapes(each.shape));
    for (const auto& [name, text] : each.attributes) {
      add_attribute(node, name, ProtobufMessage().add_bytes(2, text));
    }
    graph.add_message(1, node);
  }
  return graph.add_message(4, ProtobufMessage().add_number(1, kProducer)).bytes();
}

}  // namespace disttf::data
