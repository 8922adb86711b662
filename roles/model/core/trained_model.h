// A trained model as a thing: what a run leaves that can be asked, exported and served.
//
// Values and pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "math/aligned.h"
#include "math/parameter_layout.h"
#include "math/predictor.h"
#include "roles/run/run_config.h"

namespace disttf::roles {

struct TrainedModel {
  RunConfig config;                // of the run, and what is known of its examples
  std::uint64_t step = 0;          // updates that made it
  math::AlignedVector parameters;  // the whole vector of layout_of(config.model), padding included
  std::string weights_sha256;      // weights_hash() of them
  bool is_result = false;          // the run has ended with them
  std::optional<double> accuracy = std::nullopt;  // of the test set, where somebody has said it

  [[nodiscard]] bool is_of_numbers() const noexcept { return config.model.numbers; }
  // Of labels that are numbers: one of them is an answer, and no class.
  [[nodiscard]] bool tells_numbers() const noexcept;
  // "7", or "setosa". REQUIRES: index < config.model.classes.
  [[nodiscard]] std::string class_name(std::size_t index) const;
};

// SHA-256 (hex) over all variables in order, each as little-endian float32, padding left out.
[[nodiscard]] std::string weights_hash(const math::ParameterLayout& layout,
                                       std::span<const float> parameters);

// How its numbers are scaled. Borrowed from `model`.
[[nodiscard]] math::NumberScaling scaling_of(const TrainedModel& model) noexcept;

// What its answers are computed with here: what the run had, where this CPU has that, so that they
// are those that the run was evaluated by; else the fastest.
struct Arithmetic {
  math::Isa isa = math::Isa::kGeneric;
  math::ComputeDtype dtype = math::ComputeDtype::kF32;
};
[[nodiscard]] Arithmetic arithmetic_for(const RunConfig& config) noexcept;

// Borrows `model`. `max_rows`, `threads`: as math::Predictor has them.
[[nodiscard]] std::unique_ptr<math::Predictor> predictor_of(const TrainedModel& model,
                                                            std::size_t max_rows,
                                                            std::size_t threads = 1);

}  // namespace disttf::roles
