// What one run trains and how: everything that its final weights depend on. The chief publishes
// it through the ps; the other tasks need only the addresses.
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

// What tensors are sent as between trainers and ps (math/bf16.h, math/block_float.h).
enum class WireDtype : std::uint8_t { kF32, kBf16, kInt8, kInt4 };
inline constexpr std::array<std::string_view, 4> kWireDtypeNames = {"f32", "bf16", "int8", "int4"};
[[nodiscard]] std::string_view wire_dtype_name(WireDtype dtype) noexcept;
[[nodiscard]] std::optional<WireDtype> wire_dtype_from_name(std::string_view name) noexcept;

// What a ps does with a gradient that no step should be made of (roles/ps/core/gradient_check.h).
enum class BadGradients : std::uint8_t { kRefuse, kCount };
inline constexpr std::array<std::string_view, 2> kBadGradientsNames = {"refuse", "count"};

// What somebody must know who asks the trained model, besides its weights and layers: found out
// from the data set by the chief, and saved with every checkpoint. No setting: nobody chooses it.
struct ExampleFacts {
  std::vector<std::string> classes;  // their names; none: 0, 1, 2, ..., or labels are numbers
  std::vector<std::string> columns;  // the names of a row's numbers; none: images, or too long
  std::string label;                 // what the label is called; empty: nothing
  // x is trained on as (x - mean) * scale, by its place in the row; none of images.
  std::vector<float> means;
  std::vector<float> scales;
  // A label that is a number as (t - mean) * scale.
  float target_mean = 0;
  float target_scale = 1;
  friend bool operator==(const ExampleFacts&, const ExampleFacts&) = default;
};

// The table in settings.cc has a row for each member, and for each of model and optimizer that a
// user may choose; what stands behind = here is the default of the flag.
struct RunConfig {
  std::string dataset;        // "MNIST" or "Digits"; known once the data has been loaded
  std::string data_checksum;  // data::Dataset::checksum, hex
  math::ModelSpec model;
  math::OptimizerSpec optimizer;
  math::RateDecay rate_decay = math::RateDecay::kLinear;
  std::uint64_t warmup_steps = 0;  // in which the rate rises from 0; of train_steps
  math::Isa isa = math::Isa::kGeneric;
  math::ComputeDtype compute_dtype = math::ComputeDtype::kF32;
  std::size_t batch_size = 100;      // rows per trainer and step
  std::uint64_t train_steps = 2000;  // global steps; sync: aggregated updates
  bool sync_replicas = true;
  std::size_t replicas_to_aggregate = 0;       // sync: 0 = all trainers; fewer: backup workers
  std::optional<std::uint64_t> max_staleness;  // async: none = unbounded
  math::Augmentation augmentation;             // of the images that are trained on
  std::uint64_t seed = 1;
  std::size_t trainers = 0;  // chief and workers: the cluster's; elastic: at most
  // Elastic: a step is made of so many micro-batches of batch_size rows, whoever computes them;
  // 0: not elastic, one of each trainer.
  std::size_t micro_batches = 0;
  std::size_t min_workers = 0;  // elastic: fewer make no step; the chief task not counted
  std::size_t ps_replicas = 1;  // ps that hold each range: 1, or 2 with live replicas
  // Less than f32: gradients are computed at parameters that are rounded to it, and are rounded,
  // too. The parameters that the ps keep, and the final ones, are not.
  WireDtype wire_dtype = WireDtype::kF32;
  float clip_norm = 0;          // of the gradient of a batch, at most; 0: any
  float max_gradient_norm = 0;  // that a ps takes; of its range; 0: any
  BadGradients bad_gradients = BadGradients::kRefuse;
  float top_k = 0;                // share of a gradient's components that is pushed; 0: all
  std::uint64_t eval_every = 0;   // global steps between evaluations by the chief; 0 = at the end
  std::uint64_t test_shifts = 0;  // pixels that an image which is evaluated is shifted by, at most
  // What ends a run before its last step; 0: nothing. Both are about the validation set, at the
  // evaluations on the way: roles/chief/core/early_stop.h.
  float target_accuracy = 0;   // of one that is at least this
  std::uint64_t patience = 0;  // so many in a row none of which was the best so far
  ExampleFacts examples = {};  // not published: to_saved_json()

  // Rows that one global step trains on: sync, a gradient of each trainer that counts; async, one.
  [[nodiscard]] std::uint64_t rows_per_step() const noexcept {
    const std::size_t counted = replicas_to_aggregate == 0 ? slots() : replicas_to_aggregate;
    return batch_size * (sync_replicas ? counted : 1);
  }
  [[nodiscard]] math::RateSchedule rate_schedule() const noexcept {
    return {.decay = rate_decay, .steps = train_steps, .warmup_steps = warmup_steps};
  }
  [[nodiscard]] bool elastic() const noexcept { return micro_batches != 0; }
  [[nodiscard]] bool stops_early() const noexcept { return target_accuracy != 0 || patience != 0; }
  // Gradients that are computed for one step.
  [[nodiscard]] std::size_t slots() const noexcept { return elastic() ? micro_batches : trainers; }
  // The strictest mode: every trainer's gradient counts in every step, so the final weights are a
  // function of this configuration alone.
  [[nodiscard]] bool every_gradient_counts() const noexcept {
    return sync_replicas && (replicas_to_aggregate == 0 || replicas_to_aggregate >= trainers);
  }
};

// The largest parameter vector that a run may ask a ps to hold, in floats (8 GiB): a limit for
// configurations that come over the wire, not for users' ambitions.
inline constexpr std::size_t kMaxParameters = std::size_t{1} << 31U;
inline constexpr std::size_t kMaxTrainers = 10'000;
inline constexpr std::size_t kMaxPsReplicas = 2;
inline constexpr std::size_t kMaxBatchSize = std::size_t{1} << 20U;
// What a batch and the outputs of all layers for it may take of a trainer's memory: as much as the
// largest parameter vector. A hundredth of it is already beyond every cache.
inline constexpr std::size_t kMaxActivationBytes = std::size_t{8} << 30U;
// What the gradients of the micro-batches of one step may take of the memory of all ps together.
inline constexpr std::size_t kMaxMicroBatchBytes = std::size_t{64} << 30U;
// Of steps and seeds: numbers in JSON survive every reader up to 2^53.
inline constexpr std::uint64_t kMaxCount = std::uint64_t{1} << 53U;

// What --compress takes: "none", or "topk:0.01" for a share above 0 and below 1.
[[nodiscard]] std::string compress_name(float top_k);
[[nodiscard]] std::optional<float> compress_from_name(std::string_view name) noexcept;

// One JSON object, flag name -> value, e.g. {"batch_size": 100, "optimizer": "adam", ...}.
[[nodiscard]] std::string to_json(const RunConfig& config);

// The same with what is known of the examples, for a checkpoint or a model's file: the key
// "examples", which whoever does not ask for it need not know. Published it is not, as a table of
// thousands of columns would fill a frame, and every trainer has the data.
[[nodiscard]] std::string to_saved_json(const RunConfig& config);

// The identity of a published configuration: a hash of `json`, the bytes that the chief publishes
// (docs/wire_format.md, "Which configuration"). Never 0. A ps compares it with that of each trainer
// that joins. 64 bits: it tells configurations of people apart, not those of an attacker, who could
// send any gradient anyway.
[[nodiscard]] std::uint64_t configuration_id(std::string_view json) noexcept;

// Reads either back. Throws std::invalid_argument with the key, the value and what is allowed: the
// bytes come from a peer.
[[nodiscard]] RunConfig run_config_from_json(std::string_view json);

// Throws std::invalid_argument naming the flag, the value and what is allowed.
void validate(const RunConfig& config);

// The same unless the model takes such examples and tells apart so many classes. A ps, which never
// sees an example, serves any model; a worker that did would read beside its examples.
struct ExampleKind {
  math::Shape shape{};
  bool numbers = false;             // math::ModelSpec::numbers
  bool labels_are_numbers = false;  // math::LossType::of_numbers
  std::size_t classes = 0;
};
void validate_for(const ExampleKind& examples, const RunConfig& config);

// The first flag in `explicit_flags` (names as on the command line, without dashes) on which
// `mine` contradicts what the chief published, as a sentence with both values; else nullopt.
[[nodiscard]] std::optional<std::string> contradiction(const RunConfig& mine,
                                                       const std::set<std::string>& explicit_flags,
                                                       const RunConfig& published);

// How a run with `config` differs from the one that `saved_json` (to_json's, from a checkpoint)
// describes, if it does: the first field that does, with both values. Its weights are then not
// those of an undisturbed run.
[[nodiscard]] std::optional<std::string> difference(const RunConfig& config,
                                                    std::string_view saved_json);

// How `now` differs from `before`, two configurations of which the second took the place of the
// first: "--seed is 2, it was 1; --batch_size is 50, it was 100". Empty: no setting differs.
[[nodiscard]] std::string changes(const RunConfig& before, const RunConfig& now);

// Whether the evaluations of both measure alike, so that a loss of one can be held against a loss
// of the other.
[[nodiscard]] bool evaluates_alike(const RunConfig& config, std::string_view saved_json);

// Whether a run with `config` would have ended early where that one did.
[[nodiscard]] bool stops_alike(const RunConfig& config, std::string_view saved_json);

// Why a CPU that has `supported` (math::supported_isas()) cannot take part, if it cannot: the
// published arithmetic is not among them.
[[nodiscard]] std::optional<std::string> missing_isa(const RunConfig& published,
                                                     std::span<const math::Isa> supported);

}  // namespace disttf::roles
