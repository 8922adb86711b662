// Parses an ONNX file into nodes, their attributes and constants. onnx_layers.h interprets the
// nodes.
//
// The file is not trusted: nothing is allocated beyond the file's own size. Pure functions;
// callable from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace disttf::roles {

struct OnnxTensor {
  std::vector<std::int64_t> sizes;    // empty: a scalar
  std::vector<float> floats;          // for float and double
  std::vector<std::int64_t> numbers;  // for int32 and int64
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
  std::string domain;  // empty or "ai.onnx": ONNX's own operators
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::map<std::string, OnnxAttribute, std::less<>> attributes;
};

struct OnnxValue {
  std::string name;
  std::vector<std::int64_t> sizes;  // -1: any
};

struct OnnxFile {
  std::int64_t opset = 0;  // of ONNX's own operators
  std::vector<OnnxNode> nodes;
  std::map<std::string, OnnxTensor, std::less<>> constants;
  std::vector<OnnxValue> inputs;
  std::vector<OnnxValue> outputs;
  std::map<std::string, std::string> facts;  // metadata_props
};

// Throws std::invalid_argument with one sentence that begins with `where`, the file's name.
[[nodiscard]] OnnxFile read_onnx(std::string_view bytes, const std::string& where);

// The graph's only input that is not a constant. Throws likewise.
[[nodiscard]] const OnnxValue& input_of(const OnnxFile& file, const std::string& where);

}  // namespace disttf::roles
