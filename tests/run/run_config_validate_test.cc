// What makes a configuration invalid.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "math/program_layout.h"
#include "run/run_config.h"
#include "run/setting.h"
#include "tests/run/run_configs.h"
#include "tests/support/thrown.h"

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
  EXPECT_EQ(sentence_of([&] { validate(config); }), GetParam().message);
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
  EXPECT_THAT(sentence_of([&] { validate(config); }), HasSubstr("hidden_units: 0 "));
  config = base_config();
  config.optimizer.learning_rate = -1;
  EXPECT_THAT(sentence_of([&] { validate(config); }), HasSubstr("learning_rate: -1 "));
  config = base_config();
  config.optimizer.momentum = 1;
  EXPECT_THAT(sentence_of([&] { validate(config); }), HasSubstr("momentum: 1 "));
}

TEST(ValidateFor, RefusesModelsOfOtherExamplesAndClasses) {
  const ExampleKind images{.shape = {28, 28, 1}, .classes = 10};
  RunConfig config = base_config();
  EXPECT_NO_THROW(validate_for(images, config));
  config.model.input = {.channels = 784};
  EXPECT_EQ(sentence_of([&] { validate_for(images, config); }),
            "--inputs: 784 is not 28x28x1, the shape of an example");
  config = base_config();
  config.model.numbers = true;
  EXPECT_EQ(sentence_of([&] { validate_for(images, config); }),
            "--numbers: true is not allowed for images of bytes");
  config = base_config();
  config.model.classes = 9;
  EXPECT_EQ(sentence_of([&] { validate_for(images, config); }),
            "--classes: 9 is not 10, the classes of the data set");
}

TEST(Validate, ChangesNoTables) {
  RunConfig config = base_config();
  config.model.numbers = true;
  config.augmentation.shift = 0.1F;
  EXPECT_EQ(sentence_of([&] { validate(config); }),
            "--data: a table is not allowed with --augment_..., which change images");
}

TEST(Validate, AcceptsEveryTrainerAsReplicaToAggregate) {
  RunConfig config = base_config();
  config.replicas_to_aggregate = config.trainers;
  EXPECT_NO_THROW(validate(config));
  EXPECT_TRUE(config.every_gradient_counts());
}

// The configuration of a run whose model is a user's program: published, read back, checked and
// compared.

using nlohmann::json;

RunConfig program_of(std::vector<math::Variable> variables) {
  RunConfig config = base_config();
  config.model.variables = std::move(variables);
  return config;
}

RunConfig small_program() {
  return program_of({{.name = "fc1.weight", .shape = {784, 100}},
                     {.name = "fc1.bias", .shape = {100}, .decays = false},
                     {.name = "bn.running_mean", .shape = {32}, .momentum = 0.9F},
                     {.name = "frozen", .shape = {2, 3}, .rate_factor = 0},
                     {.name = "temperature", .shape = {}, .decays = false, .rate_factor = 0.1F}});
}

RunConfig read_back(const RunConfig& config) { return run_config_from_json(to_json(config)); }

TEST(PublishedProgram, IsAListOfItsVariables) {
  EXPECT_EQ(json::parse(to_json(small_program())).at("model").dump(),
            R"({"variables":[["fc1.weight",[784,100]],["fc1.bias",[100],{"decays":false}],)"
            R"(["bn.running_mean",[32],{"momentum":0.9}],["frozen",[2,3],{"rate_factor":0.0}],)"
            R"(["temperature",[],{"decays":false,"rate_factor":0.1}]]})");
}

TEST(PublishedProgram, ComesBack) {
  const RunConfig back = read_back(small_program());
  EXPECT_EQ(back.model, small_program().model);
  EXPECT_EQ(to_json(back), to_json(small_program()));
  EXPECT_EQ(run_config_from_json(to_saved_json(small_program())).model, small_program().model);
  EXPECT_FALSE(read_back(base_config()).model.is_program());
}

TEST(PublishedProgram, IsShownWithoutWhatHasNoEffect) {
  const json shown = json::parse(shown_settings(small_program()));
  EXPECT_EQ(shown.at("model"), "program of 5 variables");
  EXPECT_TRUE(shown.contains("learning_rate"));
  for (const char* const other : {"hidden_units", "loss", "augment_shift", "test_shifts"}) {
    EXPECT_FALSE(shown.contains(other)) << other;
  }
  EXPECT_EQ(shown_settings(base_config()), to_json(base_config()));
}

TEST(PublishedProgram, WithThousandsOfVariablesComesBack) {
  std::vector<math::Variable> variables;
  for (std::size_t i = 0; i < 5000; ++i) {
    variables.push_back(
        {.name = "layers." + std::to_string(i) + ".weight", .shape = {i % 7 + 1, 3}});
  }
  const RunConfig config = program_of(variables);
  EXPECT_NO_THROW(validate(read_back(config)));
  EXPECT_EQ(read_back(config).model, config.model);
}

// What validate() accepts fits into the frame of a configuration: 16 MiB, of which the other
// settings take a few KiB.
TEST(PublishedProgram, IsNoLongerThanAFrame) {
  std::vector<math::Variable> variables;
  for (std::size_t i = 0; i < math::kMaxProgramVariables; ++i) {
    variables.push_back({.name = std::to_string(i) + std::string(60, '"'),
                         .shape = std::vector<std::size_t>(7, 1),
                         .decays = false,
                         .rate_factor = 1.1754945e-38F});
  }
  const RunConfig config = program_of(std::move(variables));
  EXPECT_NO_THROW(validate(config));
  EXPECT_GT(to_json(config).size(), std::size_t{10} << 20U);
  EXPECT_LT(to_json(config).size(), std::size_t{16} << 20U);
}

// What a peer could send instead of variables.
TEST(PublishedProgram, IsRefusedWhereItIsNoListOfVariables) {
  const std::string none = "--model: the object is not a list of 1 to 65536 variables";
  const std::string no_variable = "variable 1 of --model is not a list of a name";
  const std::string no_shape = "variable 1 of --model is not one whose shape is a list of at most";
  const std::string others = "variable 1 of --model is not one with decays, rate_factor and";
  const std::string number = "variable 1 of --model is not one whose rate_factor and momentum are";
  for (const auto& [variables, sentence] : std::vector<std::pair<std::string, std::string>>{
           {"{}", none},
           {R"({"variables": 3})", none},
           {R"({"variables": []})", none},
           {R"({"variables": [["w", [1]]], "layers": []})", none},
           {json{{"variables", std::vector<int>(65'537, 1)}}.dump(), none},
           {R"({"variables": [["w", [1]]], "fingerprint": {"a": 1}})",
            "the fingerprint of --model"},
           {R"({"variables": ["w"]})", no_variable},
           {R"({"variables": [["w"]]})", no_variable},
           {R"({"variables": [[3, [1]]]})", no_variable},
           {R"({"variables": [["w", [1], {}, {}]]})", no_variable},
           {R"({"variables": [[")" + std::string(257, 'w') + R"(", [1]]]})", no_variable},
           {R"({"variables": [["v", [1]], ["w", 1]]})", "variable 2 of --model"},
           {R"({"variables": [["w", 1]]})", no_shape},
           {R"({"variables": [["w", [1.5]]]})", no_shape},
           {R"({"variables": [["w", [-1]]]})", no_shape},
           {R"({"variables": [["w", ["1"]]]})", no_shape},
           {json{{"variables", json::array({json::array({"w", std::vector<int>(65, 1)})})}}.dump(),
            no_shape},
           {R"({"variables": [["w", [1], []]]})", others},
           {R"({"variables": [["w", [1], {"decays": 1}]]})", others},
           {R"({"variables": [["w", [1], {"sparse": true}]]})", others},
           {R"({"variables": [["w", [1], {"rate_factor": "1"}]]})", number},
           {R"({"variables": [["w", [1], {"rate_factor": 1e39}]]})", number},
           {R"({"variables": [["w", [1], {"momentum": null}]]})", number}}) {
    json with = json::parse(to_json(base_config()));
    with["model"] = json::parse(variables);
    EXPECT_THAT(sentence_of([&] { return run_config_from_json(with.dump()); }), HasSubstr(sentence))
        << variables.substr(0, 80);
  }
}

TEST(PublishedProgram, HasItsFingerprint) {
  RunConfig config = small_program();
  config.model.fingerprint = {{"torch", "2.9"}, {"threads", "1"}};
  EXPECT_EQ(run_config_from_json(to_json(config)).model.fingerprint, config.model.fingerprint);
}

// The values are checked as those of every model, after they were read.
TEST(PublishedProgram, IsCheckedAfterItWasRead) {
  json with = json::parse(to_json(base_config()));
  with["model"] = json::parse(R"({"variables": [["w", [4294967296, 4294967296]]]})");
  const RunConfig config = run_config_from_json(with.dump());
  EXPECT_THAT(sentence_of([&] { validate(config); }), HasSubstr("2147483648 numbers"));
}

TEST(ValidateProgram, LooksAtNoImage) {
  RunConfig config = small_program();
  config.model.input = {.height = 0, .width = 0};
  config.model.classes = 0;
  config.model.hidden = {};
  config.model.loss = math::LossKind::kMeanSquaredError;
  config.model.numbers = true;
  config.target_accuracy = 0.9F;
  config.eval_every = 10;
  EXPECT_NO_THROW(validate(config));
}

TEST(ValidateProgram, RefusesWhatChangesImages) {
  RunConfig augmented = small_program();
  augmented.augmentation.flip = true;
  EXPECT_EQ(sentence_of([&] { validate(augmented); }),
            "--program: a user's program is not allowed with --augment_..., which change images "
            "that disttf reads");
  RunConfig shifted = small_program();
  shifted.test_shifts = 1;
  EXPECT_EQ(sentence_of([&] { validate(shifted); }),
            "--test_shifts: 1 is not allowed with --program: a user's program evaluates by itself");
}

TEST(ValidateProgram, ChecksWhatRunningStatisticsNeed) {
  RunConfig config = small_program();
  config.wire_dtype = WireDtype::kInt8;
  EXPECT_THAT(sentence_of([&] { validate(config); }), HasSubstr("running statistics"));
  config.model.variables.erase(config.model.variables.begin() + 2);
  EXPECT_NO_THROW(validate(config));
}

TEST(ValidateProgram, BoundsTheGradientsOfAStep) {
  RunConfig config = program_of({{.name = "w", .shape = {std::size_t{1} << 31U}}});
  config.micro_batches = 9;
  EXPECT_EQ(sentence_of([&] { validate(config); }),
            "--micro_batches: 9 is not from 0 to 8 with a program of 1 variable: the gradients of "
            "a step take 64 GiB of the memory of all ps at most");
}

TEST(ComparedPrograms, NameTheFirstVariableThatDiffers) {
  RunConfig other = small_program();
  other.model.variables[0].shape = {784, 200};
  EXPECT_EQ(contradiction(small_program(), {"model"}, other),
            "the programs have different variables: variable 1 is fc1.weight [784, 100], the "
            "chief's is fc1.weight [784, 200]");
  EXPECT_EQ(difference(small_program(), to_json(other)),
            "variable 1 is fc1.weight [784, 100], the checkpoint's is fc1.weight [784, 200]: the "
            "weights will not be those of either");
  EXPECT_EQ(changes(other, small_program()),
            "variable 1 is fc1.weight [784, 100], the earlier run's is fc1.weight [784, 200]");
  EXPECT_EQ(difference(small_program(), to_json(small_program())), std::nullopt);
  EXPECT_EQ(changes(small_program(), small_program()), "");
}

// The number of rows is where a built-in data set has its checksum.
TEST(ComparedPrograms, NameTheirDataAndItsRows) {
  RunConfig mine = small_program();
  mine.data_checksum = "77";
  RunConfig other = small_program();
  other.data_checksum = "600";
  EXPECT_EQ(difference(mine, to_json(other)),
            "the number of rows of the program's data is 77, the checkpoint's run had 600: the "
            "weights will not be those of either");
  EXPECT_EQ(changes(other, mine), "the number of rows of the program's data is 77, it was 600");
  other.data_checksum.clear();
  EXPECT_THAT(difference(mine, to_json(other)).value_or(""),
              HasSubstr("is 77, the checkpoint's run had none"));
  mine.dataset = "other";
  other.dataset = "made-up";
  EXPECT_THAT(difference(mine, to_json(other)).value_or(""),
              HasSubstr("the program's data is \"other\", the checkpoint's run had \"made-up\""));
}

TEST(ComparedPrograms, NoticeAnotherRate) {
  RunConfig other = small_program();
  other.model.variables[3].rate_factor = 1;
  EXPECT_THAT(difference(small_program(), to_json(other)).value_or(""),
              HasSubstr("variable 4 is frozen [2, 3], rate factor 0, the checkpoint's is frozen"));
}

TEST(ComparedPrograms, AreShownBesideModelsOfLayers) {
  EXPECT_EQ(changes(base_config(), small_program()),
            "--model is a program of 5 variables, it was \"mlp\"");
  EXPECT_EQ(contradiction(base_config(), {"model"}, small_program()),
            "--model: this task was given \"mlp\", the chief published a program of 5 variables; "
            "leave the flag out or give the chief's value");
  RunConfig again = small_program();
  const auto is_model = [](const Setting& setting) { return setting.name == "model"; };
  const auto setting = std::ranges::find_if(settings(), is_model);
  ASSERT_NE(setting, settings().end());
  EXPECT_EQ(text_of(*setting, again), "program of 5 variables");
  EXPECT_TRUE(set_from_text(*setting, "mlp", again));
  EXPECT_FALSE(again.model.is_program());
}

}  // namespace
}  // namespace disttf::roles
