#include "model/trained_model.h"

#include <algorithm>

#include "data/checksums.h"
#include "math/kernels.h"
#include "run/outcome.h"

namespace disttf::roles {

bool TrainedModel::tells_numbers() const noexcept {
  return math::loss_type(config.model.loss).of_numbers;
}

std::string TrainedModel::class_name(std::size_t index) const {
  // Not all data sets have names of classes.
  const auto& names = config.examples.classes;
  return index < names.size() ? names[index] : std::to_string(index);
}

void require_layers(const RunConfig& config, std::string_view what) {
  if (config.model.is_program()) {
    throw Failure(kUsage, "the model is a user's program: " + std::string(what) +
                              " computes only models of layers");
  }
}

std::string weights_hash(const math::ParameterLayout& layout, std::span<const float> parameters) {
  data::Sha256 hash;
  // By variable, because the bytes between them are padding.
  for (const math::Variable& variable : layout.variables()) {
    hash.update(std::as_bytes(parameters.subspan(variable.offset, variable.size)));
  }
  return hash.hex();
}

math::NumberScaling scaling_of(const TrainedModel& model) noexcept {
  const ExampleFacts& facts = model.config.examples;
  return {.means = facts.means,
          .scales = facts.scales,
          .target_mean = facts.target_mean,
          .target_scale = facts.target_scale};
}

Arithmetic arithmetic_for(const RunConfig& config) noexcept {
  const auto supported = math::supported_isas();
  Arithmetic result{.isa = config.isa, .dtype = config.compute_dtype};
  // The model may come from a machine with another processor.
  if (std::ranges::find(supported, result.isa) == supported.end()) {
    result.isa = supported.front();
  }
  // Float32 works everywhere. Its answers differ slightly from those of the run.
  if (!math::can_multiply(result.isa, result.dtype)) {
    result.dtype = math::ComputeDtype::kF32;
  }
  return result;
}

std::uint64_t predictor_bytes(const TrainedModel& model, std::size_t max_rows) {
  return std::uint64_t{max_rows} * math::activation_floats(model.config.model) * sizeof(float);
}

std::unique_ptr<math::Predictor> predictor_of(const TrainedModel& model, std::size_t max_rows,
                                              std::size_t threads) {
  const Arithmetic arithmetic = arithmetic_for(model.config);
  return std::make_unique<math::Predictor>(model.config.model, model.parameters.span(),
                                           scaling_of(model), max_rows, arithmetic.isa,
                                           arithmetic.dtype, threads);
}

}  // namespace disttf::roles
