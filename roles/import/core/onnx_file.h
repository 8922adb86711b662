// An ONNX file as the values that it consists of: nodes, their attributes, constants. What the
// nodes mean is onnx_layers.h's.
//
// Nothing that stands there is trusted: no more is allocated than the file has bytes for. Pure
// functions; callable from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace disttf::roles {

struct OnnxTensor {
  std::vector<std::int64_t> sizes;    // none: a single number
  std::vector<float> floats;          // of float and double
  std::vector<std::int64_t> numbers;  // of int32 and int64
};

struct OnnxAttribute {
  float number = 0;
  std::int64_t whole = 0;
  std::string text;
  std::vector<std::int64_t> wholes;
  std::vector<float> numbers;
  OnnxTensor tensor;
};

struct OnnxNode {
  std::string name;
  std::string type;    // "Gemm"
  std::string domain;  // empty or "ai.onnx": of ONNX itself
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::map<std::string, OnnxAttribute, std::less<>> attributes;
};

struct OnnxValue {
  std::string name;
  std::vector<std::int64_t> sizes;  // -1: any
};

struct OnnxFile {
  std::int64_t opset = 0;  // of ONNX itself
  std::vector<OnnxNode> nodes;
  std::map<std::string, OnnxTensor, std::less<>> constants;
  std::vector<OnnxValue> inputs;
  std::vector<OnnxValue> outputs;
  std::map<std::string, std::string> facts;  // metadata_props
};

// Throws std::invalid_argument with one sentence, which `where`, the file's name, begins.
[[nodiscard]] OnnxFile read_onnx(std::string_view bytes, const std::string& where);

// Its one input that is no constant. The same.
[[nodiscard]] const OnnxValue& input_of(const OnnxFile& file, const std::string& where);

}  // namespace disttf::roles
