#include "run/run_config.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "math/names.h"
#include "math/program_layout.h"
#include "net/wire/text.h"
#include "run/setting.h"
#include "text/shortest_number.h"

namespace disttf::roles {
namespace {

constexpr const char* kTopK = "topk:";

static_assert(math::kMaxProgramFloats == kMaxParameters);

// Names what makes a model large: "--hidden_units 100,50", or "--model cnn" and the like.
std::string size_text(const math::ModelSpec& model) {
  if (model.is_program()) {
    return "a " + math::describe(model);
  }
  if (!model.layers.empty() || model.kind != math::ModelKind::kMlp) {
    return "--model " + math::describe(model) + " on images of " + math::to_string(model.input);
  }
  return "--hidden_units " +
         net::joined(model.hidden, ",", [](std::size_t units) { return std::to_string(units); });
}

// Returns a trainer's memory for one row and its label.
std::size_t row_bytes(const math::ModelSpec& model) {
  // 1: the label.
  return math::activation_floats(model) * sizeof(float) + 1;
}

// Each field is valid by itself, but their combination may need too much memory. REQUIRES: each is
// in its range.
void check_memory(const RunConfig& config) {
  const math::ModelSpec& model = config.model;
  // Divisions instead of products, which could overflow.
  const std::size_t most_rows = kMaxActivationBytes / row_bytes(model);
  if (config.batch_size > most_rows) {
    refuse_setting(
        "batch_size", std::to_string(config.batch_size),
        "from 1 to " + std::to_string(most_rows) + " with " + size_text(model) +
            ": a batch and the outputs of all layers take 8 GiB of a trainer's memory at most");
  }
  const std::size_t gradient_bytes = math::layout_of(model).size() * sizeof(float);
  if (config.micro_batches > kMaxMicroBatchBytes / gradient_bytes) {
    refuse_setting("micro_batches", std::to_string(config.micro_batches),
                   "from 0 to " + std::to_string(kMaxMicroBatchBytes / gradient_bytes) + " with " +
                       size_text(model) +
                       ": the gradients of a step take 64 GiB of the memory of all ps at most");
  }
}

// Block floats and top-k would round a variance to 0, or hold it back, for a long time.
void check_running_statistics(const RunConfig& config) {
  const math::ParameterLayout layout = math::layout_of(config.model);
  if (layout.running({0, layout.size()}).empty()) {
    return;
  }
  if (config.wire_dtype == WireDtype::kInt8 || config.wire_dtype == WireDtype::kInt4) {
    refuse_setting("wire_dtype", std::string(wire_dtype_name(config.wire_dtype)),
                   "allowed with running statistics, as batch_norm has them; f32 and bf16 are");
  }
  if (config.top_k != 0) {
    refuse_setting("compress", compress_name(config.top_k),
                   "allowed with running statistics, as batch_norm has them: each step needs all");
  }
}

// Early stopping needs intermediate evaluations, and no step may be made during one.
void check_early_stopping(const RunConfig& config) {
  if (!config.stops_early()) {
    return;
  }
  const bool has_target = config.target_accuracy != 0;
  const char* const name = has_target ? "target_accuracy" : "patience";
  const std::string value =
      has_target ? shortest_number(config.target_accuracy) : std::to_string(config.patience);
  if (has_target && !config.model.is_program() && math::loss_type(config.model.loss).of_numbers) {
    refuse_setting(name, value, "allowed where labels are numbers; --patience is");
  }
  if (config.eval_every == 0) {
    refuse_setting(name, value, "allowed without --eval_every, which sets when it is evaluated");
  }
  if (config.elastic()) {
    refuse_setting(name, value,
                   "allowed with --min_workers, --max_workers or --micro_batches: such a run makes "
                   "steps while the chief evaluates");
  }
}

// A program reads and changes its examples itself.
void check_program(const RunConfig& config) {
  if (config.augmentation.any()) {
    refuse_setting("program", "a user's program",
                   "allowed with --augment_..., which change images that disttf reads");
  }
  if (config.test_shifts != 0) {
    refuse_setting("test_shifts", std::to_string(config.test_shifts),
                   "allowed with --program: a user's program evaluates by itself");
  }
}

// An image shifted by its own width is black.
void check_test_shifts(const RunConfig& config) {
  if (config.test_shifts == 0) {
    return;
  }
  const std::string value = std::to_string(config.test_shifts);
  if (config.model.numbers) {
    refuse_setting("test_shifts", value, "allowed for a table: only images can be shifted");
  }
  const math::Shape& image = config.model.input;
  const std::size_t side = std::min(image.height, image.width);
  if (config.test_shifts >= side) {
    refuse_setting("test_shifts", value,
                   "below " + std::to_string(side) + ", the smaller side of an image");
  }
}

}  // namespace

void validate(const RunConfig& config) {
  const std::size_t trainers = config.trainers;
  // No flag sets this number: it follows from the lists of hosts, which the message names.
  if (trainers < 1 || trainers > kMaxTrainers) {
    refuse_setting("worker_hosts", std::to_string(trainers) + " trainers",
                   "from 1 to 10000 trainers");
  }
  for (const Setting& setting : settings()) {
    check_bounds(setting, config);
  }
  // Each value is in its bounds; the following checks are about combinations.
  if (config.ps_replicas == 2 && config.elastic()) {
    refuse_setting("ps_replicas", "2",
                   "allowed with --min_workers, --max_workers or --micro_batches");
  }
  const std::size_t layers = config.model.hidden.size();
  // Only the built-in mlp uses hidden units.
  if (!config.model.is_program() && config.model.layers.empty() &&
      config.model.kind == math::ModelKind::kMlp &&
      (layers < 1 || layers > math::kMaxHiddenLayers)) {
    refuse_setting("hidden_units", std::to_string(layers) + " layers", "from 1 to 16 layers");
  }
  // The optimizer and the model come before the checks that use their sizes.
  math::validate(config.optimizer);
  math::validate(config.model);
  // (A program's were checked by math::validate().)
  if (const std::size_t size = math::layout_of(config.model).size(); size > kMaxParameters) {
    refuse_setting("hidden_units", std::to_string(size) + " parameters",
                   "within 2147483648 parameters in all");
  }
  check_running_statistics(config);
  if (const std::size_t least = math::least_rows(config.model); config.batch_size < least) {
    refuse_setting("batch_size", std::to_string(config.batch_size),
                   "at least " + std::to_string(least) +
                       ", without which the batch_norm of plain numbers has no variance");
  }
  if (!math::can_multiply(config.isa, config.compute_dtype)) {
    refuse_setting("compute_dtype", std::string(math::compute_dtype_name(config.compute_dtype)),
                   "allowed with --isa generic, which lacks fused multiply-adds");
  }
  if (config.replicas_to_aggregate > trainers) {
    refuse_setting("replicas_to_aggregate", std::to_string(config.replicas_to_aggregate),
                   "from 0 to the number of trainers, " + std::to_string(trainers));
  }
  if (!config.sync_replicas && config.replicas_to_aggregate != 0) {
    refuse_setting("replicas_to_aggregate", std::to_string(config.replicas_to_aggregate),
                   "allowed with --sync_replicas=false");
  }
  if (config.model.is_program()) {
    check_program(config);
  } else {
    if (config.model.numbers && config.augmentation.any()) {
      refuse_setting("data", "a table", "allowed with --augment_..., which change images");
    }
    check_test_shifts(config);
  }
  // The rate would never reach its value.
  if (config.warmup_steps >= config.train_steps) {
    refuse_setting("warmup_steps", std::to_string(config.warmup_steps),
                   "below --train_steps, " + std::to_string(config.train_steps));
  }
  check_memory(config);
  check_early_stopping(config);
  if (config.elastic() && (!config.sync_replicas || config.replicas_to_aggregate != 0)) {
    refuse_setting("micro_batches", std::to_string(config.micro_batches),
                   "allowed with --sync_replicas=false or --replicas_to_aggregate");
  }
  if (config.elastic() && config.top_k != 0) {
    refuse_setting(
        "compress", compress_name(config.top_k),
        "allowed with --min_workers, --max_workers or --micro_batches: every trainer must "
        "compute the same gradient of a micro-batch");
  }
  if (config.min_workers > trainers) {
    refuse_setting("min_workers", std::to_string(config.min_workers),
                   "from 1 to the number of trainers, " + std::to_string(trainers));
  }
  // A clipped gradient must be accepted.
  if (config.max_gradient_norm != 0 && config.max_gradient_norm < config.clip_norm) {
    refuse_setting("max_gradient_norm", shortest_number(config.max_gradient_norm),
                   "0 or at least --clip_norm, " + shortest_number(config.clip_norm));
  }
  if (config.sync_replicas && config.max_staleness) {
    refuse_setting("max_staleness", std::to_string(*config.max_staleness),
                   "allowed without --sync_replicas=false");
  }
}

void validate_for(const ExampleKind& examples, const RunConfig& config) {
  if (config.model.is_program()) {
    throw std::invalid_argument(
        "--program: missing; the run trains a user's program, which reads the examples itself");
  }
  if (config.model.input != examples.shape) {
    refuse_setting("inputs", math::to_string(config.model.input),
                   math::to_string(examples.shape) + ", the shape of an example");
  }
  if (config.model.numbers != examples.numbers) {
    refuse_setting(
        "numbers", config.model.numbers ? "true" : "false",
        std::string("allowed for ") + (examples.numbers ? "rows of numbers" : "images of bytes"));
  }
  if (math::loss_type(config.model.loss).of_numbers != examples.labels_are_numbers) {
    refuse_setting("loss", std::string(math::loss_type(config.model.loss).name),
                   std::string("allowed where labels are ") +
                       (examples.labels_are_numbers ? "numbers" : "classes"));
  }
  if (config.model.classes != examples.classes) {
    refuse_setting("classes", std::to_string(config.model.classes),
                   std::to_string(examples.classes) + ", the classes of the data set");
  }
}

std::optional<std::string> missing_isa(const RunConfig& published,
                                       std::span<const math::Isa> supported) {
  // All tasks compute with the instructions that the chief chose: others round differently.
  if (std::find(supported.begin(), supported.end(), published.isa) != supported.end()) {
    return std::nullopt;
  }
  return "--isa: the chief computes with " + std::string(math::isa_name(published.isa)) +
         ", which this CPU lacks; start the chief with --isa " +
         std::string(math::isa_name(supported.front()));
}

std::string_view wire_dtype_name(WireDtype dtype) noexcept {
  return math::name_of(kWireDtypeNames, dtype);
}

std::string compress_name(float top_k) {
  return top_k == 0 ? "none" : kTopK + shortest_number(top_k);
}

std::optional<float> compress_from_name(std::string_view name) noexcept {
  if (name == "none") {
    return 0.0F;
  }
  if (!name.starts_with(kTopK)) {
    return std::nullopt;
  }
  name.remove_prefix(std::string_view(kTopK).size());
  float share = 0;
  const auto [stopped, error] = std::from_chars(name.data(), name.data() + name.size(), share);
  // `!(share > 0)` also rejects NaN.
  // A share of 1 is "none".
  if (error != std::errc() || stopped != name.data() + name.size() || !(share > 0) || share >= 1) {
    return std::nullopt;
  }
  return share;
}

}  // namespace disttf::roles
