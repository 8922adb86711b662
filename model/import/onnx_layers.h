// Converts the nodes of an ONNX file into layers of disttf and their weights.
//
// The nodes must be a chain from one input to one output, of Gemm, MatMul and Add, Conv, MaxPool,
// AveragePool, BatchNormalization, Relu, Tanh, Sigmoid, Flatten (or Reshape to a row), Softmax,
// Transpose, Reshape, Unsqueeze and Squeeze of an image (image_layout.h), Identity, Dropout, Cast;
// before the first layer and behind the last one also Sub, Mul, Div and Add with constants, which
// scale. Any other node is refused by name.
//
// A pure function; callable from any thread.
#pragma once

#include <string>
#include <vector>

#include "math/model_spec.h"
#include "model/import/image_layout.h"
#include "model/import/onnx_file.h"

namespace disttf::roles {

struct ImportedLayers {
  math::ModelSpec model;  // `layers` is set
  // In the order of layout_of(model).
  std::vector<std::vector<float>> variables;
  std::vector<std::string> notes;  // sentences about what was not imported
};

// `wishes.shape`: a row of numbers is an image of this shape; none: it is a row of a table. Throws
// std::invalid_argument with one sentence that begins with `where`, the file's name, or with the
// flag that decides.
[[nodiscard]] ImportedLayers layers_of_onnx(const OnnxFile& file, const std::string& where,
                                            const InputWishes& wishes = {});

}  // namespace disttf::roles
