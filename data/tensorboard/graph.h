// A graph of operations in TensorBoard's form: a TensorFlow GraphDef.
//
// Values and pure functions; callable from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace disttf::data {

inline constexpr std::int64_t kAnySize = -1;

struct GraphNode {
  std::string name;                 // "hid/MatMul": the part before a slash is drawn as a box
  std::string op;                   // "MatMul"
  std::vector<std::string> inputs;  // names of nodes
  std::string device;               // "/job:ps/task:0"
  std::vector<std::int64_t> shape;  // of the output; kAnySize: the batch size
  std::map<std::string, std::string> attributes{};
};

[[nodiscard]] std::string graph_def(std::span<const GraphNode> nodes);

}  // namespace disttf::data
