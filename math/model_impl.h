// The implementation of Model: model.cc trains, model_evaluation.cc evaluates. No other source
// includes this file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "math/aligned.h"
#include "math/augmentation.h"
#include "math/evaluation.h"
#include "math/kernels_table.h"
#include "math/layers/layer.h"
#include "math/losses/registry.h"
#include "math/model.h"
#include "math/model_plan.h"
#include "math/thread_pool.h"

namespace disttf::math {

struct Model::Impl {
  // Where several threads share a product, each computes whole panels of that many rows: on the
  // generic set the bits of a row depend on whether it is in a panel.
  static constexpr std::size_t kPanelRows = kInferredPanelRows;
  // Some rows of the gradient by a stage's first variable.
  struct GradientPart {
    std::size_t stage = 0;
    Rows rows;
  };
  // Parts that are computed together.
  using Round = std::vector<GradientPart>;

  Impl(ModelSpec model_spec, std::size_t rows, Isa isa, ComputeDtype dtype, std::size_t threads);

  // Prefetches row `row` of `set`, which is loaded soon. Returns the number of bytes. `kLocality`:
  // as for __builtin_prefetch().
  template <int kLocality>
  std::size_t prefetch(const ImageSet& set, std::size_t row) const noexcept;
  // Stores row `row` of `set`, with its image shifted, as the batch's row `position`.
  void load_example(const ImageSet& set, std::size_t row, std::size_t position,
                    ImageShift by = {}) noexcept;
  // The same including the label.
  void load_row(const ImageSet& set, std::size_t row, std::size_t position,
                ImageShift by = {}) noexcept;
  // Passes rows of the batch through the segments of `part`; the last segment gives the logits.
  // `trains`: layers draw random numbers, and the rows are measured.
  void forward(const float* parameters, Rows rows, Phase part, std::size_t member,
               bool trains) noexcept;
  // Replaces the rows' outputs by the gradient by them times `scale`, in the last layer's delta.
  // Returns the sum of the rows' losses.
  double differentiate_loss(Rows rows, float scale, float smoothing) noexcept;
  // For evaluation: rows [begin, begin + count) of `set`, shifted, become the batch's `rows`;
  // computes the last layer's output for them.
  void give(const float* parameters, const ImageSet& set, std::size_t begin, Rows rows,
            ImageShift by, std::size_t member) noexcept;
  // The same for all shifts by up to `most` pixels: the outputs are the means. `sums` has room for
  // the whole batch's outputs.
  void give_shifts(const float* parameters, const ImageSet& set, std::size_t begin, Rows rows,
                   std::size_t most, float* sums, std::size_t member) noexcept;
  // Classifies the first `count` rows of the batch by their outputs. With two classes, `margins`
  // has room for them.
  void judge(std::size_t count, const ImageSet& set, Evaluation& result, Margin* margins) noexcept;
  // Propagates the gradient by the outputs of the segments of `part` back through their layers.
  void propagate(const float* parameters, Rows rows, Phase part, std::size_t member) noexcept;
  // Passes the batch forward and back; `parts` splits its rows. Returns the sum of the rows'
  // losses.
  double forward_backward(const float* parameters, const EvenParts& parts) noexcept;
  // Computes the gradient by a stage's variables from both passes, over all rows of the batch.
  void differentiate(const float* parameters, const GradientPart& part, float* gradient,
                     std::size_t member) noexcept;
  // Prepares the parameters for the backward pass (Layer::prepare()).
  void prepare(const float* parameters) noexcept;
  // Prepares the stages that measure batches, for evaluation.
  void prepare_evaluation(const float* parameters) noexcept;
  // The pass of stage `index`; the caller fills in its rows.
  [[nodiscard]] LayerPass pass_of(std::size_t index, const float* parameters,
                                  std::size_t member) noexcept;
  // The same in training, with all rows of the batch.
  [[nodiscard]] LayerPass pass_of_batch(std::size_t index, const float* parameters) noexcept;
  [[nodiscard]] std::size_t classes() const noexcept { return spec.classes; }
  [[nodiscard]] bool of_numbers() const noexcept { return loss_type(spec.loss).of_numbers; }

  void plan_rounds();
  // Splits `rows` of a stage's gradient among all threads.
  void add_parts(Round& round, std::size_t index, Rows rows) const;
  // Zeroes the padding between the variables.
  void clear_padding(std::span<float> gradient) const noexcept;

  ModelSpec spec;
  ParameterLayout layout;
  const Kernels& kernels;
  const Products& products;
  std::size_t max_batch;
  ModelPlan plan;
  bool takes_pixels = false;         // whether the first layer does
  std::vector<std::uint8_t> pixels;  // [max_batch, inputs]: x * 255, if it does; else empty
  AlignedVector batch;               // [max_batch, inputs]: x, if it does not; else empty
  std::size_t batch_rows = 0;        // filled rows; 0: none, or filled by evaluate()
  std::vector<std::uint8_t> labels;  // [max_batch], for classes
  std::vector<float> targets;        // [max_batch], for numbers
  ThreadPool pool;
  PassObserver* observer = nullptr;    // of gradients; null: none
  std::vector<AlignedVector> scratch;  // by member
  std::vector<LayerDraws> draws;       // by stage
  // The rounds of a gradient, from the last stage to the first: all in one round; or with the first
  // stage in several pieces.
  std::vector<Round> at_once;
  std::vector<Round> pieces;
  std::vector<double> losses;  // by part of a batch
};

}  // namespace disttf::math
