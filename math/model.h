// A model that computes: parameters and a batch of images give the loss and its gradient. A
// ModelSpec (math/model_spec.h) describes it; math/layers/ implements its layers.
//
// The loss (math/losses/) is the mean over the batch of each row's loss, from the last layer's
// output, [batch, classes], and the label; in training with ModelSpec::label_smoothing. The first
// layer takes the batch's pixels times 1/255, or numbers.
//
// Errors: a ModelSpec is user input, so validate() throws; everything else would be a bug.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "math/evaluation.h"
#include "math/kernels.h"
#include "math/model_spec.h"
#include "math/parameter_layout.h"

namespace disttf::math {

// Examples and their labels in memory, one example after the other: images as bytes, or numbers for
// a model that takes those (ModelSpec::numbers).
struct ImageSet {
  std::span<const std::uint8_t> images{};  // [rows, inputs], 0..255; becomes x/255 in the batch
  std::span<const std::uint8_t> labels{};  // [rows], each < classes; or `targets`
  std::span<const float> numbers{};        // [rows, inputs]; become (x - mean) * scale
  std::span<const float> means{};          // [inputs]
  std::span<const float> scales{};         // [inputs]
  std::span<const float> targets{};        // [rows], where labels are numbers; (t - mean) * scale
  float target_mean = 0;
  float target_scale = 1;
  [[nodiscard]] std::size_t rows() const noexcept { return labels.size() + targets.size(); }
};

// Notified of the phases of a gradient, on the thread that computes it: for time measurements.
// (With several threads: the phases of the first one.)
class PassObserver {
 public:
  PassObserver() = default;
  PassObserver(const PassObserver&) = delete;
  PassObserver& operator=(const PassObserver&) = delete;
  virtual ~PassObserver() = default;
  virtual void on_forward_done() noexcept = 0;   // up to the loss, for some rows
  virtual void on_backward_done() noexcept = 0;  // backward through the layers, for the same rows
};

class Model {
 public:
  // `max_batch`: the largest number of rows for gradient(). All memory is allocated here; a step
  // allocates nothing. Throws as validate() does. `dtype`: the type that operands of products are
  // rounded to. With bfloat16 results are bit-identical on all sets that support it, on threads
  // that have called flush_denormals(). `threads`: how many threads compute, including the caller.
  // Each computes rows of the batch's results, then rows of the gradient, so results do not depend
  // on the number. REQUIRES: max_batch > 0; isa is in supported_isas(); can_multiply(isa, dtype);
  // threads > 0.
  Model(ModelSpec spec, std::size_t max_batch, Isa isa, ComputeDtype dtype = ComputeDtype::kF32,
        std::size_t threads = 1);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  [[nodiscard]] const ParameterLayout& layout() const noexcept;

  // Sets each layer's initial values (LayerVariable::deviation). A function of (seed, variable,
  // element) only, bit-identical on every machine and instruction set. Padding becomes zero.
  // REQUIRES: parameters.size() == layout().size()
  void initialize(std::uint64_t seed, std::span<float> parameters) const;

  // Returns the mean loss over the rows `rows` of `set`, and writes (not adds) its gradient to all
  // of `gradient`, with zeros for the padding. Equal inputs on the same isa give bit-identical
  // results on any machine, whatever max_batch is. Finite logits, however large, give a finite
  // gradient. REQUIRES: parameters, gradient: layout().size() floats, 64-byte aligned; 0 <
  // rows.size() <= max_batch; every row < set.rows(); every label < classes.
  float gradient(std::span<const float> parameters, const ImageSet& set,
                 std::span<const std::uint32_t> rows, std::span<float> gradient);

  // Identifies a batch of a run for layers that draw random numbers: with it and the run's seed the
  // draws are the same on every task.
  struct Place {
    std::uint64_t seed = 0;
    std::uint64_t step = 0;   // below kStreamLimit (math/random.h)
    std::uint64_t first = 0;  // index of the batch's first row in the step
  };
  // The same in two parts. load() makes the rows the batch; it needs no parameters and so can run
  // while these are being received. Then gradient_of_batch() computes. evaluate() replaces the
  // batch.
  void load(const ImageSet& set, std::span<const std::uint32_t> rows, const Place& place);
  void load(const ImageSet& set, std::span<const std::uint32_t> rows) { load(set, rows, Place{}); }
  // Prefetches rows that load() is likely to get next, while something else takes its time. Changes
  // nothing else. REQUIRES: every row < set.rows().
  void expect(const ImageSet& set, std::span<const std::uint32_t> rows) const noexcept;
  // `on_ready`, if set, is called now and then with the loss, when the first `ready` floats of the
  // gradient are final; not for the last ones.
  using OnReady = std::function<void(float loss, std::size_t ready)>;
  float gradient_of_batch(std::span<const float> parameters, std::span<float> gradient,
                          const OnReady& on_ready = {});

  // For the next gradients; nullptr: no observer. It must outlive them.
  void observe(PassObserver* observer) noexcept;

  // Evaluates all rows of `set`, in chunks of max_batch. The class of an image is that of the first
  // of the largest logits; none if a logit is not a number. With `shifts`, class and loss use the
  // mean of the logits over all shifts of the image by up to that many pixels
  // (math/augmentation.h): added in order, then divided by their number, in float32. Bit-identical
  // on the sets for which gradient() is. REQUIRES: parameters as above; every label < classes;
  // shifts is 0, or set.images has them.
  Evaluation evaluate(std::span<const float> parameters, const ImageSet& set,
                      std::size_t shifts = 0);

  // Computes the last layer's output for each of the first `rows` examples of `set`, ignoring
  // labels: [rows, outputs], before softmax or sigmoid. The bits of an example's outputs depend
  // neither on the other examples nor on their number. REQUIRES: parameters as above;
  // outputs.size() == rows * ModelSpec::classes; max_batch is a multiple of kInferredPanelRows.
  static constexpr std::size_t kInferredPanelRows = 4;
  void infer(std::span<const float> parameters, const ImageSet& set, std::size_t rows,
             std::span<float> outputs);

  // Returns the input of the last layer with weights for the first `rows` rows of `set`, which is
  // the model's representation (embedding) of the examples: [rows, inputs of that layer]. REQUIRES:
  // parameters as above; rows <= set.rows().
  [[nodiscard]] std::vector<float> inputs_of_last(std::span<const float> parameters,
                                                  const ImageSet& set, std::size_t rows);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace disttf::math
