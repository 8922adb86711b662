// What a run trains and how: everything that its final weights depend on. The chief publishes it
// through the ps; the other tasks need only the addresses.
//
// Values and pure functions; callable from any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "math/augmentation.h"
#include "math/kernels.h"
#include "math/model.h"
#include "math/optimizer.h"
#include "math/rate_schedule.h"

namespace disttf::roles {

// The form of tensors between trainers and ps (math/rounding.h).
enum class WireDtype : std::uint8_t { kF32, kBf16, kInt8, kInt4 };
inline constexpr std::array<std::string_view, 4> kWireDtypeNames = {"f32", "bf16", "int8", "int4"};
[[nodiscard]] std::string_view wire_dtype_name(WireDtype dtype) noexcept;

// What a ps does with a non-finite or oversized gradient (roles/ps/core/gradient_check.h).
enum class RejectedGradients : std::uint8_t { kRefuse, kCount };
inline constexpr std::array<std::string_view, 2> kRejectedGradientsNames = {"refuse", "count"};

// What a user of the trained model needs besides its weights and layers. The chief finds it out
// from the data set, and every checkpoint contains it. It is not a setting, since it is not chosen.
struct ExampleFacts {
  std::vector<std::string> classes;  // class names; empty: 0, 1, 2, ..., or labels are numbers
  std::vector<std::string> columns;  // names of a row's numbers; empty: images, or too long
  std::string label;                 // name of the label; empty: none
  // Input i is trained on as (x - means[i]) * scales[i]; empty for images.
  std::vector<float> means;
  std::vector<float> scales;
  // A numeric label is trained on as (t - target_mean) * target_scale.
  float target_mean = 0;
  float target_scale = 1;
  friend bool operator==(const ExampleFacts&, const ExampleFacts&) = default;
};

// The table in settings.cc has a row for each member, and for each member of model and optimizer
// that a user may choose. The initializers here are the defaults of the flags.
struct RunConfig {
  std::string dataset;        // "MNIST" or "Digits"; known once the data has been loaded
  std::string data_checksum;  // data::Dataset::checksum, hex; of a program: number of rows, or none
  math::ModelSpec model;
  math::OptimizerSpec optimizer;
  math::RateDecay rate_decay = math::RateDecay::kLinear;
  std::uint64_t warmup_steps = 0;  // of train_steps: the rate rises from 0
  math::Isa isa = math::Isa::kGeneric;
  math::ComputeDtype compute_dtype = math::ComputeDtype::kF32;
  std::size_t batch_size = 100;      // rows per trainer and step
  std::uint64_t train_steps = 2000;  // global steps; sync: aggregated updates
  bool sync_replicas = true;
  std::size_t replicas_to_aggregate = 0;       // sync: 0 = all trainers; fewer: backup workers
  std::optional<std::uint64_t> max_staleness;  // async: none = unbounded
  math::Augmentation augmentation;             // of the training images
  std::uint64_t seed = 1;
  std::size_t trainers = 0;  // chief and workers of the cluster; elastic: at most
  // Elastic: a step consists of this many micro-batches of batch_size rows, on whichever trainers;
  // 0: not elastic, one batch of each trainer.
  std::size_t micro_batches = 0;
  std::size_t min_workers = 0;  // elastic: minimum for a step, without the chief task
  std::size_t ps_replicas = 1;  // ps that hold each range: 1, or 2 with live replicas
  // Below f32: gradients are computed at parameters rounded to this type, and are rounded
  // themselves. The parameters that the ps keep, and the final ones, are not rounded.
  WireDtype wire_dtype = WireDtype::kF32;
  float clip_norm = 0;          // largest norm of a batch's gradient; 0: no limit
  float max_gradient_norm = 0;  // largest norm that a ps accepts, over its range; 0: no limit
  RejectedGradients rejected_gradients = RejectedGradients::kRefuse;
  float top_k = 0;                // share of a gradient's components that is pushed; 0: all
  std::uint64_t eval_every = 0;   // global steps between evaluations by the chief; 0 = at the end
  std::uint64_t test_shifts = 0;  // largest shift, in pixels, of evaluated images
  // What ends a run before its last step; 0: nothing. Both are about intermediate evaluations on
  // the validation set: roles/chief/core/early_stop.h.
  float target_accuracy = 0;   // the accuracy that ends it
  std::uint64_t patience = 0;  // the number of evaluations in a row without a new best
  ExampleFacts examples = {};  // not published: to_saved_json()

  // Rows that one global step trains on. Sync: one gradient of each trainer that counts; async: one
  // gradient.
  [[nodiscard]] std::uint64_t rows_per_step() const noexcept {
    const std::size_t counted = replicas_to_aggregate == 0 ? slots() : replicas_to_aggregate;
    return batch_size * (sync_replicas ? counted : 1);
  }
  [[nodiscard]] math::RateSchedule rate_schedule() const noexcept {
    return {.decay = rate_decay, .steps = train_steps, .warmup_steps = warmup_steps};
  }
  [[nodiscard]] bool elastic() const noexcept { return micro_batches != 0; }
  [[nodiscard]] bool stops_early() const noexcept { return target_accuracy != 0 || patience != 0; }
  // Gradients computed for one step.
  [[nodiscard]] std::size_t slots() const noexcept { return elastic() ? micro_batches : trainers; }
  // Whether the run is fully synchronous: every trainer's gradient counts in every step, so that
  // the final weights are a function of this configuration alone.
  [[nodiscard]] bool every_gradient_counts() const noexcept {
    return sync_replicas && (replicas_to_aggregate == 0 || replicas_to_aggregate >= trainers);
  }
};

// The largest parameter vector that a run may request from a ps, in floats (8 GiB): a limit for
// configurations received over the wire.
inline constexpr std::size_t kMaxParameters = std::size_t{1} << 31U;
inline constexpr std::size_t kMaxTrainers = 10'000;
inline constexpr std::size_t kMaxPsReplicas = 2;
inline constexpr std::size_t kMaxBatchSize = std::size_t{1} << 20U;
// The most of a trainer's memory for a batch and the outputs of all layers: as much as the largest
// parameter vector. A hundredth of it already exceeds every cache.
inline constexpr std::size_t kMaxActivationBytes = std::size_t{8} << 30U;
// The most memory of all ps together for the gradients of one step's micro-batches.
inline constexpr std::size_t kMaxMicroBatchBytes = std::size_t{64} << 30U;
// Limit of steps and seeds: every JSON reader keeps numbers up to 2^53 exact.
inline constexpr std::uint64_t kMaxCount = std::uint64_t{1} << 53U;

// The values of --compress: "none", or "topk:0.01" for a share above 0 and below 1.
[[nodiscard]] std::string compress_name(float top_k);
[[nodiscard]] std::optional<float> compress_from_name(std::string_view name) noexcept;

// One JSON object, flag name -> value, e.g. {"batch_size": 100, "optimizer": "adam", ...}.
[[nodiscard]] std::string to_json(const RunConfig& config);
// The same for a user's eyes: of a user's program without its variables, and without the settings
// that have no effect on it.
[[nodiscard]] std::string shown_settings(const RunConfig& config);
// Whether the setting of this name has an effect on a user's program.
[[nodiscard]] bool concerns_program(std::string_view setting) noexcept;

// The same with the facts about examples, for a checkpoint or a model's file: the key "examples",
// which other readers ignore. It is not published, because a table of thousands of columns would
// fill a frame, and every trainer has the data.
[[nodiscard]] std::string to_saved_json(const RunConfig& config);

// Returns the identity of a published configuration: a hash of `json`, the bytes that the chief
// publishes (docs/wire_format.md, "Which configuration"). Never 0. A ps compares it with that of
// each trainer that joins. 64 bits distinguish configurations of users, not those of an attacker,
// who could send any gradient anyway.
[[nodiscard]] std::uint64_t configuration_id(std::string_view json) noexcept;

// Reads either form. Throws std::invalid_argument with the key, the value and what is allowed,
// because the bytes come from a peer.
[[nodiscard]] RunConfig run_config_from_json(std::string_view json);
// The same; nullopt if it is of another release.
[[nodiscard]] std::optional<RunConfig> saved_config(std::string_view saved_json);

// Throws std::invalid_argument with the flag, the value and what is allowed.
void validate(const RunConfig& config);

// Also throws unless the model fits such examples and that number of classes. A ps never sees an
// example, so it serves any model; a worker with a wrong model would read beyond its examples.
// Also throws for a user's program, which reads its examples itself.
struct ExampleKind {
  math::Shape shape{};
  bool numbers = false;             // math::ModelSpec::numbers
  bool labels_are_numbers = false;  // math::LossType::of_numbers
  std::size_t classes = 0;
};
void validate_for(const ExampleKind& examples, const RunConfig& config);

// Returns the first flag in `explicit_flags` (names as on the command line, without dashes) on
// which `mine` contradicts the published configuration, as a sentence with both values; else
// nullopt.
[[nodiscard]] std::optional<std::string> contradiction(const RunConfig& mine,
                                                       const std::set<std::string>& explicit_flags,
                                                       const RunConfig& published);

// Returns the first field in which `config` differs from the configuration in `saved_json`
// (to_json's, from a checkpoint), with both values; nullopt if none does. The weights are then not
// those of an undisturbed run.
[[nodiscard]] std::optional<std::string> difference(const RunConfig& config,
                                                    std::string_view saved_json);

// Returns how `now` differs from `before`, the configuration that it replaced: "--seed is 2, it was
// 1; --batch_size is 50, it was 100". Empty: no setting differs.
[[nodiscard]] std::string changes(const RunConfig& before, const RunConfig& now);

// Returns whether the evaluations of both runs are comparable, so that losses can be compared.
[[nodiscard]] bool evaluates_alike(const RunConfig& config, std::string_view saved_json);

// Returns whether a run with `config` would have stopped early at the same step.
[[nodiscard]] bool stops_alike(const RunConfig& config, std::string_view saved_json);

// Returns why a CPU that has `supported` (math::supported_isas()) cannot take part, if so: the
// published instruction set is not among them.
[[nodiscard]] std::optional<std::string> missing_isa(const RunConfig& published,
                                                     std::span<const math::Isa> supported);

// Whether a saved model fits the examples of a run. Pure; callable from any thread.

// Returns why a model that `saved_json` describes (to_json's, from a checkpoint) cannot be trained
// on the examples of `config`: their shape differs, even if the number of values is the same.
// nullopt: it can, or its shape is unknown.
[[nodiscard]] std::optional<std::string> other_examples(const RunConfig& config,
                                                        std::string_view saved_json);

}  // namespace disttf::roles
