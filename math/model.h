// A model that computes: parameters + a batch of images -> loss and gradient. What it consists of
// is a ModelSpec (math/model_spec.h), what its layers do stands in math/layers/.
//
// The loss (math/losses/) is the mean over the batch of that of each row of what the last layer
// gives, [batch, classes], and its label; in training with ModelSpec::label_smoothing. The
// first layer takes the batch's pixels times 1/255; or numbers.
//
// Errors: a ModelSpec is the user's, so validate() throws; everything else is our own bug.
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

// Examples and their labels as they lie in memory, one example after the other: images of bytes, or
// where the model takes numbers (ModelSpec::numbers) those.
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

// One model with its workspace. Not thread-safe: one object per computing thread.
// Told, on the thread that computes a gradient, when what it does changes: for whoever measures how
// long each takes. (Of several threads, what the first one does.)
class PassObserver {
 public:
  PassObserver() = default;
  PassObserver(const PassObserver&) = delete;
  PassObserver& operator=(const PassObserver&) = delete;
  virtual ~PassObserver() = default;
  virtual void went_forward() noexcept = 0;  // up to the loss, of some rows
  virtual void went_back() noexcept = 0;     // through the layers, of the same rows
};

class Model {
 public:
  // `max_batch`: the largest number of rows gradient() will be given; all memory is taken here,
  // nothing is allocated in a step. Throws as validate() does.
  // `dtype`: what the operands of products are rounded to. With bfloat16 the bits are the same on
  // all sets that have it, on threads that have called flush_denormals(). `threads`: how many
  // compute, the caller among them. Each computes rows of what a batch leads to, then rows of the
  // gradient, so the bits do not depend on them.
  // REQUIRES: max_batch > 0; isa is in supported_isas(); can_multiply(isa, dtype); threads > 0.
  Model(ModelSpec spec, std::size_t max_batch, Isa isa, ComputeDtype dtype = ComputeDtype::kF32,
        std::size_t threads = 1);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  [[nodiscard]] const ParameterLayout& layout() const noexcept;

  // Initial values as each layer has them (LayerVariable::deviation). A function of (seed,
  // variable, element) only, the same bits on every machine and instruction set. Padding becomes
  // zero. REQUIRES: parameters.size() == layout().size()
  void initialize(std::uint64_t seed, std::span<float> parameters) const;

  // Mean loss over the rows `rows` of `set`, and its gradient, written (not added) over all of
  // `gradient`, padding included (zeros there). Same inputs, same isa: same bits, on any machine
  // and whatever max_batch is. Finite logits, however large, give a finite gradient.
  // REQUIRES: parameters, gradient: layout().size() floats, 64-byte aligned; 0 < rows.size() <=
  // max_batch; every row < set.rows(); every label < classes.
  float gradient(std::span<const float> parameters, const ImageSet& set,
                 std::span<const std::uint32_t> rows, std::span<float> gradient);

  // Which batch of a run it is, where layers draw random numbers: with them and the run's seed they
  // are the same, whoever computes it.
  struct Place {
    std::uint64_t seed = 0;
    std::uint64_t step = 0;   // below kStreamLimit (math/random.h)
    std::uint64_t first = 0;  // of the batch's first row among all rows of the step
  };
  // The same in two parts: the rows become the batch, which needs no parameters and so can be done
  // while those are on their way; then the batch's gradient. evaluate() makes other batches.
  void load(const ImageSet& set, std::span<const std::uint32_t> rows, const Place& place);
  void load(const ImageSet& set, std::span<const std::uint32_t> rows) { load(set, rows, Place{}); }
  // Says which rows load() is likely to be given next, and that something takes its time before:
  // the processor brings them nearer meanwhile. Changes nothing else. REQUIRES: every row <
  // set.rows().
  void expect(const ImageSet& set, std::span<const std::uint32_t> rows) const noexcept;
  // `on_ready`, if there is one, is called now and then with the loss, when so many floats of the
  // gradient, from its beginning, are final; not for the last ones.
  using OnReady = std::function<void(float loss, std::size_t ready)>;
  float gradient_of_batch(std::span<const float> parameters, std::span<float> gradient,
                          const OnReady& on_ready = {});

  // Of the next gradients; nullptr: nobody. It must outlive them.
  void observe(PassObserver* observer) noexcept;

  // Over all rows of `set`, in chunks of max_batch. An image is judged to be of the class of the
  // first of the largest logits; of none where one is not a number. With `shifts`, by what it is
  // judged and what its loss is of are the means of the logits, each over all shifts of the image
  // by up to so many pixels (math/test_shifts.h): added up in their order, then divided by their
  // number, in float32. The same bits on the sets that gradient() has the same bits on.
  // REQUIRES: parameters as above; every label < classes; shifts is 0, or set.images has them.
  Evaluation evaluate(std::span<const float> parameters, const ImageSet& set,
                      std::size_t shifts = 0);

  // What the last layer gives for each of the first `rows` examples of `set`, whose labels, if it
  // has any, are not looked at: [rows, outputs], before softmax or sigmoid. The bits of an
  // example's outputs depend on neither the examples beside it nor their number.
  // REQUIRES: parameters as above; outputs.size() == rows * ModelSpec::classes; max_batch is a
  // multiple of kInferredPanelRows.
  static constexpr std::size_t kInferredPanelRows = 4;
  void infer(std::span<const float> parameters, const ImageSet& set, std::size_t rows,
             std::span<float> outputs);

  // What the last layer that multiplies by weights is given of the first `rows` rows of `set`,
  // which is what the model has made of them to tell them apart: [rows, inputs of that layer].
  // REQUIRES: parameters as above; rows <= set.rows().
  [[nodiscard]] std::vector<float> inputs_of_last(std::span<const float> parameters,
                                                  const ImageSet& set, std::size_t rows);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace disttf::math
