#include "roles/trainer/shell/built_in_source.h"

#include <stdexcept>
#include <utility>

#include "math/random.h"
#include "roles/trainer/shell/run_data.h"
#include "roles/trainer/shell/trainer.h"
#include "run/outcome.h"
#include "run/process/log.h"
#include "run/process/machine.h"

namespace disttf::roles {

BuiltInSource::BuiltInSource(const TrainerOptions& options, StopSignal& stop)
    : options_(options), stop_(stop), dataset_(open_dataset(options.data, stop)) {}

math::ImageSet BuiltInSource::train_set() const { return image_set(dataset_, dataset_.train); }

// The flags were checked for an image of the usual size; a model for larger images may be too
// large.
RunConfig BuiltInSource::complete(const RunConfig& given) {
  RunConfig config = given;
  config.dataset = dataset_.name;
  config.data_checksum = dataset_.checksum;
  const ExampleKind examples = kind_of_examples(dataset_);
  config.model.input = examples.shape;
  config.model.numbers = examples.numbers;
  config.model.classes = examples.classes;
  // The default follows the labels; a flag that the user has set stays.
  if (examples.labels_are_numbers && !options_.explicit_flags.contains("loss")) {
    config.model.loss = math::LossKind::kMeanSquaredError;
  }
  config.examples = facts_of(dataset_);
  try {
    validate_for(examples, config);
    validate(config);
  } catch (const std::invalid_argument& error) {
    throw Failure(kUsage, error.what());
  }
  return config;
}

void BuiltInSource::adopt(const RunConfig& published) {
  if (published.model.is_program()) {
    throw Failure(kUsage,
                  "--program: missing; the run trains a user's program, so each of its trainers is "
                  "started with --program -- COMMAND");
  }
  // A worker without flags about data follows its chief to a built-in data set.
  const DatasetRow* const theirs = find_dataset_of_word(published.dataset);
  if (!options_.data.own && options_.data.dataset == nullptr && theirs != nullptr &&
      theirs->is_built_in()) {
    dataset_ = open_built_in_dataset(*theirs, options_.data);
    uses_built_in_ = true;
  }
  check_data(published, dataset_, options_.data, "the chief trains on");
}

void BuiltInSource::begin_anew() {
  augmented_.reset();
  if (std::exchange(uses_built_in_, false)) {
    dataset_ = open_dataset(options_.data, stop_);
  }
}

void BuiltInSource::prepare(const RunConfig& config) {
  config_ = config;
  model_.emplace(config.model, config.batch_size, config.isa, config.compute_dtype,
                 threads_of(options_.task));
  rows_.resize(config.batch_size);
  // The sampler changes, so batches drawn before are of another order.
  drawn_.reset();
  loaded_.reset();
  sampler_.emplace(
      data::SamplerOptions{.seed = config.seed,
                           .purpose = static_cast<std::uint32_t>(math::Purpose::kPermutation),
                           .rows = static_cast<std::uint32_t>(dataset_.train.rows()),
                           .batch_size = config.batch_size,
                           .trainers = config.slots(),
                           .random_bits = &math::random_bits});
  if (config.augmentation.any()) {
    augmented_.emplace(config.augmentation, config.model.input, config.seed, config.batch_size);
  }
  if (config.compute_dtype == math::ComputeDtype::kBf16) {
    log_info(std::string("Products of bfloat16 are made ") +
             std::string(math::bf16_multiplier_text(math::bf16_multiplier(config.isa))));
  }
}

void BuiltInSource::initialize(std::span<float> parameters) {
  model_->initialize(config_.seed, parameters);
}

void BuiltInSource::draw(const Batch& batch) {
  if (drawn_ != batch) {
    sampler_->batch(batch.step, batch.slot, rows_);
    drawn_ = batch;
  }
}

void BuiltInSource::load(const Batch& batch) {
  if (loaded_ == batch) {
    return;
  }
  draw(batch);
  const math::Model::Place place{
      .seed = config_.seed, .step = batch.step, .first = batch.slot * config_.batch_size};
  if (augmented_) {
    model_->load(augmented_->make(train_set(), rows_, place.step, place.first), augmented_->rows(),
                 place);
  } else {
    model_->load(train_set(), rows_, place);
  }
  loaded_ = batch;
}

// Prefetches its rows while the gradient of the batch before it is computed.
void BuiltInSource::expect(const Batch& batch) {
  draw(batch);
  model_->expect(train_set(), rows_);
}

float BuiltInSource::gradient(std::span<const float> parameters, std::span<float> gradient,
                              const math::Model::OnReady& on_ready, StageClock& stages) {
  model_->observe(stages.is_measuring() ? &stages : nullptr);
  return model_->gradient_of_batch(parameters, gradient, on_ready);
}

SetEvaluations BuiltInSource::evaluate(std::uint64_t /*step*/, std::span<const float> parameters) {
  // An evaluation overwrites the model's batch.
  loaded_.reset();
  return evaluate_sets(*model_, parameters, dataset_, config_.test_shifts);
}

std::optional<Failure> BuiltInSource::judge(std::uint64_t step, const SetEvaluations& found) const {
  return why_no_result(config_, step, found);
}

std::vector<float> BuiltInSource::last_inputs(std::span<const float> parameters, std::size_t rows) {
  // Like an evaluation, this overwrites the model's batch.
  loaded_.reset();
  return model_->inputs_of_last(parameters, image_set(dataset_, dataset_.test), rows);
}

}  // namespace disttf::roles
