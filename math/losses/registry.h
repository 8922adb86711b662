// The registry of the losses. To add one, write a file pair in this folder, a row of registry.cc
// and an enumerator below; --loss, the published configuration and the reports of a result
// follow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace disttf::math {

// The interface of a loss: how far the output of the last layer is from the label of an example,
// and the gradient. Training minimises the mean over a batch.
//
// Constant data and pure functions; callable from any thread. Nothing here allocates.
struct Kernels;

// One for each row of registry.cc, in that order.
enum class LossKind : std::uint8_t {
  kSoftmaxCrossEntropy,
  kSigmoidCrossEntropy,
  kMeanSquaredError
};

// Some examples of a batch. Each pointer points to the first one.
struct LossPass {
  const Kernels* kernels = nullptr;
  std::size_t rows = 0;
  std::size_t outputs = 0;               // per row: the classes, or 1 where labels are numbers
  const std::uint8_t* labels = nullptr;  // [rows], each < outputs; for labels that are classes
  const float* targets = nullptr;        // [rows]; for labels that are numbers
  float scale = 0;                       // of the gradient: 1 / the batch's rows
  float smoothing = 0;                   // ModelSpec::label_smoothing
};

// How an answer follows from the output of the last layer, in terms that other programs share: the
// probabilities of classes of which one is right, of each class independently; or no function.
enum class AnswerFunction : std::uint8_t { kSoftmax, kSigmoid, kIdentity };

struct LossType {
  std::string_view name;  // the value of --loss
  bool of_numbers = false;
  // Replaces `outputs`, [rows, outputs], by the gradient by them times scale. Returns the sum of
  // the rows' losses. Bit-identical on every instruction set but the generic one.
  double (*differentiate)(const LossPass& pass, float* outputs) noexcept = nullptr;
  // The loss of a model that guesses: it assigns each class the probability of equally frequent
  // classes, or predicts the mean of the numbers.
  double (*of_guessing)(std::size_t classes) noexcept = nullptr;
  // Converts, in place, the last layer's output for one example to an answer: the probabilities of
  // the classes. In double and in order, so that an answer's bits depend on its example alone.
  // Null: the output is the answer.
  void (*answer)(std::span<float> outputs) noexcept = nullptr;
  AnswerFunction answer_function = AnswerFunction::kIdentity;  // of `answer`
};

[[nodiscard]] const LossType& loss_type(LossKind kind) noexcept;
// By LossKind.
[[nodiscard]] std::span<const std::string_view> loss_names() noexcept;

}  // namespace disttf::math
