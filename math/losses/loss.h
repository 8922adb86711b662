// What every loss is: how far what the last layer gives for an example is from what its label says,
// and which way leads nearer. What is trained on is the mean over a batch.
//
// Constant data and pure functions; callable from any thread. Nothing here allocates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace disttf::math {

struct Kernels;

// One for each row of registry.cc, in that order.
enum class LossKind : std::uint8_t {
  kSoftmaxCrossEntropy,
  kSigmoidCrossEntropy,
  kMeanSquaredError
};

// Some examples of a batch. Each pointer is that of the first one.
struct LossPass {
  const Kernels* kernels = nullptr;
  std::size_t rows = 0;
  std::size_t outputs = 0;               // of a row: the classes, or 1 where labels are numbers
  const std::uint8_t* labels = nullptr;  // [rows], each < outputs; where labels are classes
  const float* targets = nullptr;        // [rows]; where they are numbers
  float scale = 0;                       // of the gradient: 1 / the batch's rows
  float smoothing = 0;                   // ModelSpec::label_smoothing
};

// What an answer is of what the last layer gives, in words that other programs have, too: the
// probabilities of classes of which one is right, or each by itself; or nothing else.
enum class AnswerFunction : std::uint8_t { kSoftmax, kSigmoid, kIdentity };

struct LossType {
  std::string_view name;  // the value of --loss
  bool of_numbers = false;
  // `outputs`, [rows, outputs], become the loss by them, times scale. Returns the sum of the rows'
  // losses. Same bits on every instruction set but the generic one.
  double (*differentiate)(const LossPass& pass, float* outputs) noexcept = nullptr;
  // Of a model that knows how often each class comes, if all come as often, and nothing else; or
  // the mean of the numbers.
  double (*of_guessing)(std::size_t classes) noexcept = nullptr;
  // What the last layer gives of one example -> what an answer says, in place: the probabilities of
  // the classes. In double and in their order, so that an answer's bits are those of its example
  // alone. Null: it says that already.
  void (*answer)(std::span<float> outputs) noexcept = nullptr;
  AnswerFunction answer_function = AnswerFunction::kIdentity;  // which is that
};

}  // namespace disttf::math
