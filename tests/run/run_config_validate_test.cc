// What makes a configuration invalid.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>

#include "run/run_config.h"
#include "tests/run/run_configs.h"

namespace disttf::roles {
namespace {

using testing::HasSubstr;

struct Invalid {
  const char* name;
  std::function<void(RunConfig&)> apply;
  const char* message;
  friend std::ostream& operator<<(std::ostream& out, const Invalid& i) { return out << i.name; }
};

class InvalidConfig : public testing::TestWithParam<Invalid> {};

TEST_P(InvalidConfig, IsRefusedWithFieldValueAndWhatIsAllowed) {
  RunConfig config = base_config();
  GetParam().apply(config);
  EXPECT_EQ(message_of([&] { validate(config); }), GetParam().message);
}

const std::vector<Invalid>& invalid_configs() {
  static const std::vector<Invalid> kCases = {
      {"NoTrainer", [](RunConfig& c) { c.trainers = 0; },
       "--worker_hosts: 0 trainers is not from 1 to 10000 trainers"},
      {"TooManyTrainers", [](RunConfig& c) { c.trainers = 10'001; },
       "--worker_hosts: 10001 trainers is not from 1 to 10000 trainers"},
      {"NoBatch", [](RunConfig& c) { c.batch_size = 0; },
       "--batch_size: 0 is not from 1 to 1048576"},
      {"HugeBatchOfManyUnits",
       [](RunConfig& c) {
         c.batch_size = kMaxBatchSize;
         c.model.hidden = {math::kMaxUnits};
       },
       "--batch_size: 1048576 is not from 1 to 16284 with --hidden_units 65536: a batch and "
       "the outputs of all layers take 8 GiB of a trainer's memory at most"},
      {"HugeBatchOfManyInputs",
       [](RunConfig& c) {
         c.batch_size = kMaxBatchSize;
         c.model.kind = math::ModelKind::kSoftmax;
         c.model.input = {.channels = math::kMaxInputs};
       },
       "--batch_size: 1048576 is not from 1 to 2047 with --model softmax on images of 1048576: a "
       "batch and the outputs "
       "of all layers take 8 GiB of a trainer's memory at most"},
      {"ManyMicroBatchesOfManyParameters",
       [](RunConfig& c) {
         c.micro_batches = kMaxTrainers;
         c.model.hidden = {math::kMaxUnits, 1000};
       },
       "--micro_batches: 10000 is not from 0 to 146 with --hidden_units 65536,1000: the gradients "
       "of "
       "a step take 64 GiB of the memory of all ps at most"},
      {"HugeBatch", [](RunConfig& c) { c.batch_size = kMaxBatchSize + 1; },
       "--batch_size: 1048577 is not from 1 to 1048576"},
      {"NoSteps", [](RunConfig& c) { c.train_steps = 0; }, "--train_steps: 0 is not at least 1"},
      {"HugeSteps", [](RunConfig& c) { c.train_steps = kMaxCount + 1; },
       "--train_steps: 9007199254740993 is not a whole number from 0 to 2^53"},
      {"HugeSeed", [](RunConfig& c) { c.seed = kMaxCount + 1; },
       "--seed: 9007199254740993 is not a whole number from 0 to 2^53"},
      {"HugeEvalEvery", [](RunConfig& c) { c.eval_every = kMaxCount + 1; },
       "--eval_every: 9007199254740993 is not a whole number from 0 to 2^53"},
      {"Bf16ByTheGenericSet", [](RunConfig& c) { c.compute_dtype = math::ComputeDtype::kBf16; },
       "--compute_dtype: bf16 is not allowed with --isa generic, which lacks fused multiply-adds"},
      {"ReplicasAboveTrainers", [](RunConfig& c) { c.replicas_to_aggregate = 4; },
       "--replicas_to_aggregate: 4 is not from 0 to the number of trainers, 3"},
      {"ReplicasWithAsync",
       [](RunConfig& c) {
         c.sync_replicas = false;
         c.replicas_to_aggregate = 2;
       },
       "--replicas_to_aggregate: 2 is not allowed with --sync_replicas=false"},
      {"PatienceWithoutEvaluations", [](RunConfig& c) { c.patience = 3; },
       "--patience: 3 is not allowed without --eval_every, which sets when it is evaluated"},
      {"ATargetOfAnElasticRun",
       [](RunConfig& c) {
         c.target_accuracy = 0.99F;
         c.eval_every = 100;
         c.micro_batches = 4;
       },
       "--target_accuracy: 0.99 is not allowed with --min_workers, --max_workers or "
       "--micro_batches: such a run makes steps while the chief evaluates"},
      {"FarTestShifts", [](RunConfig& c) { c.test_shifts = 9; },
       "--test_shifts: 9 is not from 0 to 8"},
      {"TestShiftsBeyondTheImage",
       [](RunConfig& c) {
         c.test_shifts = 2;
         c.model.input = {.height = 2, .width = 9, .channels = 1};
       },
       "--test_shifts: 2 is not below 2, the smaller side of an image"},
      {"TestShiftsOfATable",
       [](RunConfig& c) {
         c.test_shifts = 1;
         c.model.numbers = true;
       },
       "--test_shifts: 1 is not allowed for a table: only images can be shifted"},
      {"WarmUpUntilTheEnd", [](RunConfig& c) { c.warmup_steps = c.train_steps; },
       "--warmup_steps: 2000 is not below --train_steps, 2000"},
      {"NoCopyAtAll", [](RunConfig& c) { c.ps_replicas = 0; }, "--ps_replicas: 0 is not 1 or 2"},
      {"ThreeCopies", [](RunConfig& c) { c.ps_replicas = 3; }, "--ps_replicas: 3 is not 1 or 2"},
      {"CopiesOfAnElasticRun",
       [](RunConfig& c) {
         c.ps_replicas = 2;
         c.micro_batches = 3;
       },
       "--ps_replicas: 2 is not allowed with --min_workers, --max_workers or --micro_batches"},
      {"ComponentsOfAnElasticRun",
       [](RunConfig& c) {
         c.top_k = 0.01F;
         c.micro_batches = 3;
       },
       "--compress: topk:0.01 is not allowed with --min_workers, --max_workers or --micro_batches: "
       "every trainer must compute the same gradient of a micro-batch"},
      {"ShorterGradientsThanThoseThatAreClipped",
       [](RunConfig& c) {
         c.clip_norm = 2;
         c.max_gradient_norm = 1.5F;
       },
       "--max_gradient_norm: 1.5 is not 0 or at least --clip_norm, 2"},
      {"BlocksOfRunningStatistics",
       [](RunConfig& c) {
         c.model.layers = {{.type = "batch_norm", .name = {}, .fields = {}}};
         c.model.layers.push_back({.type = "dense", .name = {}, .fields = {{"units", 10.0}}});
         c.wire_dtype = WireDtype::kInt8;
       },
       "--wire_dtype: int8 is not allowed with running statistics, as batch_norm has them; f32 and "
       "bf16 are"},
      {"SomeOfTheRunningStatistics",
       [](RunConfig& c) {
         c.model.layers = {{.type = "batch_norm", .name = {}, .fields = {}}};
         c.model.layers.push_back({.type = "dense", .name = {}, .fields = {{"units", 10.0}}});
         c.top_k = 0.5F;
       },
       "--compress: topk:0.5 is not allowed with running statistics, as batch_norm has them: each "
       "step needs all"},
      {"VarianceOfOneNumber",
       [](RunConfig& c) {
         c.model.layers = {{.type = "flatten", .name = {}, .fields = {}},
                           {.type = "batch_norm", .name = {}, .fields = {}},
                           {.type = "dense", .name = {}, .fields = {{"units", 10.0}}}};
         c.batch_size = 1;
       },
       "--batch_size: 1 is not at least 2, without which the batch_norm of plain numbers has no "
       "variance"},
      {"StalenessWithSync", [](RunConfig& c) { c.max_staleness = 3; },
       "--max_staleness: 3 is not allowed without --sync_replicas=false"},
      {"NoLayer", [](RunConfig& c) { c.model.hidden.clear(); },
       "--hidden_units: 0 layers is not from 1 to 16 layers"},
      {"TooManyLayers", [](RunConfig& c) { c.model.hidden.assign(17, 1); },
       "--hidden_units: 17 layers is not from 1 to 16 layers"},
      {"NoInput", [](RunConfig& c) { c.model.input.height = 0; },
       "height: 0 is not allowed, it must be from 1 to 1048576"},
      {"OneClass", [](RunConfig& c) { c.model.classes = 1; },
       "classes: 1 is not allowed, it must be from 2 to 256"},
      {"MoreClassesThanALabelTells", [](RunConfig& c) { c.model.classes = 257; },
       "classes: 257 is not allowed, it must be from 2 to 256"},
      {"MoreParametersThanAPsMayHold",
       [](RunConfig& c) {
         c.model.hidden = {65'536, 65'536};
       },
       "--hidden_units: 4347133968 parameters is not within 2147483648 parameters in all"},
  };
  return kCases;
}

INSTANTIATE_TEST_SUITE_P(Validate, InvalidConfig, testing::ValuesIn(invalid_configs()),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(Validate, AcceptsTheDefaults) { EXPECT_NO_THROW(validate(base_config())); }

TEST(Validate, RefusesWhatModelAndOptimizerRefuse) {
  RunConfig config = base_config();
  config.model.hidden = {0};
  EXPECT_THAT(message_of([&] { validate(config); }), HasSubstr("hidden_units: 0 "));
  config = base_config();
  config.optimizer.learning_rate = -1;
  EXPECT_THAT(message_of([&] { validate(config); }), HasSubstr("learning_rate: -1 "));
  config = base_config();
  config.optimizer.momentum = 1;
  EXPECT_THAT(message_of([&] { validate(config); }), HasSubstr("momentum: 1 "));
}

TEST(ValidateFor, RefusesModelsOfOtherExamplesAndClasses) {
  const ExampleKind images{.shape = {28, 28, 1}, .classes = 10};
  RunConfig config = base_config();
  EXPECT_NO_THROW(validate_for(images, config));
  config.model.input = {.channels = 784};
  EXPECT_EQ(message_of([&] { validate_for(images, config); }),
            "--inputs: 784 is not 28x28x1, the shape of an example");
  config = base_config();
  config.model.numbers = true;
  EXPECT_EQ(message_of([&] { validate_for(images, config); }),
            "--numbers: true is not allowed for images of bytes");
  config = base_config();
  config.model.classes = 9;
  EXPECT_EQ(message_of([&] { validate_for(images, config); }),
            "--classes: 9 is not 10, the classes of the data set");
}

TEST(Validate, ChangesNoTables) {
  RunConfig config = base_config();
  config.model.numbers = true;
  config.augmentation.shift = 0.1F;
  EXPECT_EQ(message_of([&] { validate(config); }),
            "--data: a table is not allowed with --augment_..., which change images");
}

TEST(Validate, AcceptsEveryTrainerAsReplicaToAggregate) {
  RunConfig config = base_config();
  config.replicas_to_aggregate = config.trainers;
  EXPECT_NO_THROW(validate(config));
  EXPECT_TRUE(config.every_gradient_counts());
}

}  // namespace
}  // namespace disttf::roles
