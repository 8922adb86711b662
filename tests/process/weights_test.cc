// One trainer with batch 100 and two with 50 give the same weights after 200 steps, except for
// rounding. Runs in this process, with the trainer's own parts (sampler, model, shard) and the real
// data, because the promise is about weights and a run only prints their hash.
#include <algorithm>
#include <cmath>

#include "data/sampler.h"
#include "math/aligned.h"
#include "math/model.h"
#include "math/random.h"
#include "roles/ps/core/shard.h"
#include "run/process/stop_signal.h"
#include "storage/download/dataset_source.h"
#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

constexpr std::uint64_t kSteps = 200;

math::ImageSet images_of(const data::Split& split) {
  return {.images = split.images, .labels = split.labels};
}

// Returns the run's parameters after kSteps, with its trainers taking turns.
math::AlignedVector train(const data::Dataset& dataset, const roles::RunConfig& config) {
  math::Model model(config.model, config.batch_size, config.isa);
  const std::size_t size = model.layout().size();
  data::Sampler sampler({.seed = config.seed,
                         .purpose = static_cast<std::uint32_t>(math::Purpose::kPermutation),
                         .rows = static_cast<std::uint32_t>(dataset.train.labels.size()),
                         .batch_size = config.batch_size,
                         .trainers = config.trainers,
                         .random_bits = &math::random_bits});
  roles::Shard shard(config, {.begin = 0, .end = size});
  model.initialize(config.seed, shard.begin_restore(/*parameters_only=*/true).front());
  shard.finish_restore(0);
  std::vector<std::uint32_t> rows(config.batch_size);
  math::AlignedVector parameters(size);
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    const auto now = shard.parameters();
    std::copy(now.begin(), now.end(), parameters.data());
    for (std::size_t trainer = 0; trainer < config.trainers; ++trainer) {
      sampler.batch(step, trainer, rows);
      const roles::PushId push{.trainer = trainer, .incarnation = 1, .step = step, .sequence = 0};
      const roles::Admission admission = shard.admit(push);
      model.gradient(parameters.span(), images_of(dataset.train), rows, admission.destination);
      shard.commit(push);
    }
  }
  math::AlignedVector result(size);
  const auto last = shard.parameters();
  std::copy(last.begin(), last.end(), result.data());
  return result;
}

TEST(Weights, OfOneTrainerWithBatch100AndTwoWith50AreTheSame) {
  const roles::StopSignal stop;
  roles::DataOptions options;
  options.dataset = roles::find_dataset(has_mnist() ? "mnist" : "digits");
  options.directory = data_dir_flag().substr(std::string("--data_dir=").size());
  const data::Dataset dataset = roles::open_dataset(options, stop);
  roles::RunConfig config;
  // Not adam: for a pixel that is hardly ever inked it divides one small sum by the root of
  // another, which amplifies rounding to steps; and twice the gradient would be the same step to
  // it.
  config.optimizer.kind = math::OptimizerKind::kSgd;
  config.isa = math::supported_isas().front();
  config.optimizer.learning_rate = math::default_learning_rate(config.optimizer.kind);
  config.train_steps = kSteps;
  config.trainers = 1;
  config.batch_size = 100;
  math::AlignedVector one = train(dataset, config);
  config.trainers = 2;
  config.batch_size = 50;
  math::AlignedVector two = train(dataset, config);
  float largest = 0;
  for (std::size_t each = 0; each < one.size(); ++each) {
    largest = std::max(largest, std::abs(one.span()[each] - two.span()[each]));
  }
  EXPECT_LE(largest, 1e-5F);
}

}  // namespace
}  // namespace disttf::test_process
