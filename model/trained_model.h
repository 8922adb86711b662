// A trained model: the result of a run, or a checkpoint, for inference, export and serving.
//
// Values and pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "math/aligned.h"
#include "math/parameter_layout.h"
#include "math/predictor.h"
#include "run/run_config.h"

namespace disttf::roles {

struct TrainedModel {
  RunConfig config;                // of the run, with the facts about its examples
  std::uint64_t step = 0;          // number of updates
  math::AlignedVector parameters;  // the whole vector of layout_of(config.model), padding included
  std::string weights_sha256;      // weights_hash() of the parameters
  bool is_result = false;          // the run ended with them
  std::optional<double> accuracy = std::nullopt;  // on the test set, if known

  [[nodiscard]] bool is_of_numbers() const noexcept { return config.model.numbers; }
  // Whether the model predicts a number instead of a class.
  [[nodiscard]] bool tells_numbers() const noexcept;
  // "7", or "setosa". REQUIRES: index < config.model.classes.
  [[nodiscard]] std::string class_name(std::size_t index) const;
};

// Throws Failure(kUsage) if the model is a user's program, whose answers only the program computes.
// `what`: the command, as in "predict".
void require_layers(const RunConfig& config, std::string_view what);

// SHA-256 (hex) of all variables in order, each as little-endian float32, without padding.
[[nodiscard]] std::string weights_hash(const math::ParameterLayout& layout,
                                       std::span<const float> parameters);

// The scaling of its input numbers. Borrows from `model`.
[[nodiscard]] math::NumberScaling scaling_of(const TrainedModel& model) noexcept;

// The arithmetic for inference on this machine: the run's own where this CPU has it, so that
// answers equal those that the run evaluated; else the fastest.
struct Arithmetic {
  math::Isa isa = math::Isa::kGeneric;
  math::ComputeDtype dtype = math::ComputeDtype::kF32;
};
[[nodiscard]] Arithmetic arithmetic_for(const RunConfig& config) noexcept;

// The memory that predictor_of() takes for one thread: mostly the outputs of all layers for
// `max_rows`, which a small file may claim to be huge.
[[nodiscard]] std::uint64_t predictor_bytes(const TrainedModel& model, std::size_t max_rows);

// Borrows `model`. `max_rows`, `threads`: as in math::Predictor. REQUIRES: the model has layers.
[[nodiscard]] std::unique_ptr<math::Predictor> predictor_of(const TrainedModel& model,
                                                            std::size_t max_rows,
                                                            std::size_t threads = 1);

}  // namespace disttf::roles
