// What a Model is made of: model.cc trains with it, model_evaluation.cc evaluates. No other source
// includes this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "math/aligned.h"
#include "math/evaluation.h"
#include "math/kernels_table.h"
#include "math/layers/layer.h"
#include "math/losses/registry.h"
#include "math/model.h"
#include "math/model_plan.h"
#include "math/test_shifts.h"
#include "math/thread_pool.h"

namespace disttf::math {

struct Model::Impl {
  // Every product computes whole panels of so many rows where several threads share one: the
  // generic set's bits of a row depend on whether it is in one.
  static constexpr std::size_t kPanelRows = kInferredPanelRows;
  // Of the loss by a stage's first variable, some rows.
  struct GradientPart {
    std::size_t stage = 0;
    Rows rows;
  };
  // Parts that are computed together.
  using Round = std::vector<GradientPart>;

  Impl(ModelSpec model_spec, std::size_t rows, Isa isa, ComputeDtype dtype, std::size_t threads);

  // Asks the processor for row `row` of `set`, which is loaded soon. Returns for how many bytes of
  // it. `kLocality`: __builtin_prefetch()'s.
  template <int kLocality>
  std::size_t prefetch(const ImageSet& set, std::size_t row) const noexcept;
  // Makes the example of row `row` of `set`, its image shifted, the batch's row `position`.
  void load_example(const ImageSet& set, std::size_t row, std::size_t position,
                    ImageShift by = {}) noexcept;
  // The same with its label.
  void load_row(const ImageSet& set, std::size_t row, std::size_t position,
                ImageShift by = {}) noexcept;
  // Rows of the batch through the segments of `part`, the last of which gives their logits.
  // `trains`: layers draw random numbers, and the rows are measured.
  void forward(const float* parameters, Rows rows, Phase part, std::size_t member,
               bool trains) noexcept;
  // The rows' outputs -> the loss by them times `scale`, where the last layer's delta lies. Returns
  // the sum of the rows' losses.
  double differentiate_loss(Rows rows, float scale, float smoothing) noexcept;
  // To evaluate: rows [begin, begin + count) of `set`, shifted, become the batch's `rows`, whose
  // outputs are then what the last layer gives.
  void give(const float* parameters, const ImageSet& set, std::size_t begin, Rows rows,
            ImageShift by, std::size_t member) noexcept;
  // The same of all shifts by up to `most` pixels: the outputs are the means. `sums` has room for
  // the whole batch's.
  void give_shifts(const float* parameters, const ImageSet& set, std::size_t begin, Rows rows,
                   std::size_t most, float* sums, std::size_t member) noexcept;
  // Judges the first `count` rows of the batch by their outputs; of two classes, `margins` has room
  // for them.
  void judge(std::size_t count, const ImageSet& set, Evaluation& result, Margin* margins) noexcept;
  // The loss by what the rows' segments of `part` give -> by what each layer in them does.
  void propagate(const float* parameters, Rows rows, Phase part, std::size_t member) noexcept;
  // The batch forward and back; its rows in `parts`. Returns the sum of the rows' losses.
  double go_there_and_back(const float* parameters, const EvenParts& parts) noexcept;
  // From both, of all rows of the batch: the loss by a stage's variables.
  void differentiate(const float* parameters, const GradientPart& part, float* gradient,
                     std::size_t member) noexcept;
  // What the way back needs of the parameters in another order.
  void prepare(const float* parameters) noexcept;
  // What the stages need that measure batches, when the model is evaluated.
  void prepare_evaluation(const float* parameters) noexcept;
  // What stage `index` computes with; its rows are to be filled in.
  [[nodiscard]] LayerPass pass_of(std::size_t index, const float* parameters,
                                  std::size_t member) noexcept;
  // The same in training, with all rows of the batch.
  [[nodiscard]] LayerPass pass_of_batch(std::size_t index, const float* parameters) noexcept;
  [[nodiscard]] std::size_t classes() const noexcept { return spec.classes; }
  [[nodiscard]] bool of_numbers() const noexcept { return loss_type(spec.loss).of_numbers; }

  void plan_rounds();
  // Of a stage's gradient `rows`, shared by all threads.
  void add_parts(Round& round, std::size_t index, Rows rows) const;
  // Sets what lies between the variables to zero.
  void clear_padding(std::span<float> gradient) const noexcept;

  ModelSpec spec;
  ParameterLayout layout;
  const Kernels& kernels;
  const Products& products;
  std::size_t max_batch;
  ModelPlan plan;
  bool takes_pixels = false;         // the first layer does
  std::vector<std::uint8_t> pixels;  // [max_batch, inputs]: x * 255, where it does; else empty
  AlignedVector batch;               // [max_batch, inputs]: x, where it does not; else empty
  std::size_t batch_rows = 0;        // of them are filled; 0: none, or by evaluate()
  std::vector<std::uint8_t> labels;  // [max_batch], where they are classes
  std::vector<float> targets;        // [max_batch], where they are numbers
  ThreadPool pool;
  PassObserver* observer = nullptr;    // of gradients; null: nobody
  std::vector<AlignedVector> scratch;  // by member
  std::vector<LayerDraws> draws;       // by stage
  // One round after the other, from the last stage to the first: all in one; or the first one's in
  // several pieces.
  std::vector<Round> at_once;
  std::vector<Round> pieces;
  std::vector<double> losses;  // by part of a batch
};

}  // namespace disttf::math
