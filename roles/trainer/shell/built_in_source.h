// Gradients of a built-in model over a data set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "data/dataset.h"
#include "data/sampler.h"
#include "math/augmentation.h"
#include "math/model.h"
#include "roles/trainer/shell/gradient_source.h"
#include "storage/download/dataset_source.h"

namespace disttf::roles {

struct TrainerOptions;

class BuiltInSource final : public GradientSource {
 public:
  // Opens the data set. `options` must outlive the source. Throws Failure.
  BuiltInSource(const TrainerOptions& options, StopSignal& stop);

  [[nodiscard]] const data::Dataset& dataset() const noexcept { return dataset_; }
  // REQUIRES: prepare().
  [[nodiscard]] const math::Model& model() const noexcept { return *model_; }
  // Returns the inputs of the model's last layer for the first examples of the test set, [rows,
  // numbers]. REQUIRES: there are that many examples. Replaces the loaded batch.
  [[nodiscard]] std::vector<float> last_inputs(std::span<const float> parameters, std::size_t rows);

  [[nodiscard]] RunConfig complete(const RunConfig& config) override;
  void adopt(const RunConfig& published) override;
  void begin_anew() override;
  void prepare(const RunConfig& config) override;
  [[nodiscard]] const math::ParameterLayout& layout() const override { return model_->layout(); }
  void initialize(std::span<float> parameters) override;
  void load(const Batch& batch) override;
  void expect(const Batch& batch) override;
  float gradient(std::span<const float> parameters, std::span<float> gradient,
                 const math::Model::OnReady& on_ready, StageClock& stages) override;
  [[nodiscard]] std::span<const math::ToldNumber> numbers() const noexcept override { return {}; }
  [[nodiscard]] bool evaluates() const override { return true; }
  [[nodiscard]] SetEvaluations evaluate(std::uint64_t step,
                                        std::span<const float> parameters) override;
  [[nodiscard]] std::optional<Failure> judge(std::uint64_t step,
                                             const SetEvaluations& found) const override;
  [[nodiscard]] std::string_view name() const override { return dataset_.name; }
  [[nodiscard]] std::span<const std::string_view> class_names() const override {
    return dataset_.class_names;
  }
  [[nodiscard]] BuiltInSource* built_in() noexcept override { return this; }
  void end(std::uint64_t /*step*/, std::span<const float> /*parameters*/) override {}

 private:
  // Draws the rows of that batch into rows_, unless they are there.
  void draw(const Batch& batch);
  [[nodiscard]] math::ImageSet train_set() const;

  const TrainerOptions& options_;
  StopSignal& stop_;
  data::Dataset dataset_;
  bool uses_built_in_ = false;  // instead of the data of the options
  RunConfig config_;
  std::optional<math::Model> model_;
  std::optional<data::Sampler> sampler_;
  std::optional<math::AugmentedBatch> augmented_;  // if images are augmented
  std::vector<std::uint32_t> rows_;
  std::optional<Batch> drawn_;   // the batch of rows_
  std::optional<Batch> loaded_;  // the batch in the model
};

}  // namespace disttf::roles
