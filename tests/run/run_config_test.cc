#include "run/run_config.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "math/names.h"
#include "run/setting.h"
#include "tests/run/run_configs.h"
#include "tests/support/thrown.h"

namespace disttf::roles {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// ---- Every field goes over the wire ----

// One field of the configuration, by its key, with a value that differs from base_config()'s. The
// list is separate from the product's, so that a row that reads another row's member is noticed.
struct Mutation {
  const char* key;
  std::function<void(RunConfig&)> apply;
  friend std::ostream& operator<<(std::ostream& out, const Mutation& m) { return out << m.key; }
};

std::vector<Mutation> mutations() {
  return {
      {"dataset", [](RunConfig& c) { c.dataset = "Digits"; }},
      {"data_checksum", [](RunConfig& c) { c.data_checksum = "decaf"; }},
      {"model", [](RunConfig& c) { c.model.kind = math::ModelKind::kSoftmax; }},
      {"hidden_units",
       [](RunConfig& c) {
         c.model.hidden = {128, 64};
       }},
      {"height", [](RunConfig& c) { c.model.input.height = 7; }},
      {"width", [](RunConfig& c) { c.model.input.width = 7; }},
      {"channels", [](RunConfig& c) { c.model.input.channels = 2; }},
      {"classes", [](RunConfig& c) { c.model.classes = 2; }},
      {"numbers", [](RunConfig& c) { c.model.numbers = true; }},
      {"loss", [](RunConfig& c) { c.model.loss = math::LossKind::kSigmoidCrossEntropy; }},
      {"optimizer", [](RunConfig& c) { c.optimizer.kind = math::OptimizerKind::kMomentum; }},
      {"learning_rate", [](RunConfig& c) { c.optimizer.learning_rate = 0.1F; }},
      {"learning_rate_decay", [](RunConfig& c) { c.rate_decay = math::RateDecay::kNone; }},
      {"warmup_steps", [](RunConfig& c) { c.warmup_steps = 5; }},
      {"momentum", [](RunConfig& c) { c.optimizer.momentum = 0.7F; }},
      {"weight_decay", [](RunConfig& c) { c.optimizer.weight_decay = 0.01F; }},
      {"ps_replicas", [](RunConfig& c) { c.ps_replicas = 2; }},
      {"isa", [](RunConfig& c) { c.isa = math::Isa::kAvx2; }},
      {"compute_dtype", [](RunConfig& c) { c.compute_dtype = math::ComputeDtype::kBf16; }},
      {"batch_size", [](RunConfig& c) { c.batch_size = 7; }},
      {"train_steps", [](RunConfig& c) { c.train_steps = kMaxCount; }},
      {"sync_replicas", [](RunConfig& c) { c.sync_replicas = false; }},
      {"replicas_to_aggregate", [](RunConfig& c) { c.replicas_to_aggregate = 2; }},
      {"max_staleness", [](RunConfig& c) { c.max_staleness = 0; }},
      {"trainers", [](RunConfig& c) { c.trainers = 4; }},
      {"micro_batches", [](RunConfig& c) { c.micro_batches = 6; }},
      {"min_workers", [](RunConfig& c) { c.min_workers = 2; }},
      {"wire_dtype", [](RunConfig& c) { c.wire_dtype = WireDtype::kBf16; }},
      {"ema", [](RunConfig& c) { c.optimizer.average_decay = 0.999F; }},
      {"clip_norm", [](RunConfig& c) { c.clip_norm = 1.5F; }},
      {"bad_gradients", [](RunConfig& c) { c.rejected_gradients = RejectedGradients::kCount; }},
      {"max_gradient_norm", [](RunConfig& c) { c.max_gradient_norm = 5; }},
      {"augment_shift", [](RunConfig& c) { c.augmentation.shift = 0.1F; }},
      {"augment_rotate", [](RunConfig& c) { c.augmentation.rotate = 10; }},
      {"augment_scale", [](RunConfig& c) { c.augmentation.scale = 0.1F; }},
      {"augment_shear", [](RunConfig& c) { c.augmentation.shear = 0.1F; }},
      {"augment_elastic", [](RunConfig& c) { c.augmentation.elastic = 0.1F; }},
      {"augment_cutout", [](RunConfig& c) { c.augmentation.cutout = 0.1F; }},
      {"augment_flip", [](RunConfig& c) { c.augmentation.flip = true; }},
      {"label_smoothing", [](RunConfig& c) { c.model.label_smoothing = 0.1F; }},
      {"compress", [](RunConfig& c) { c.top_k = 0.01F; }},
      {"seed", [](RunConfig& c) { c.seed = 99; }},
      {"eval_every", [](RunConfig& c) { c.eval_every = 5; }},
      {"test_shifts", [](RunConfig& c) { c.test_shifts = 2; }},
      {"target_accuracy", [](RunConfig& c) { c.target_accuracy = 0.5F; }},
      {"patience", [](RunConfig& c) { c.patience = 3; }},
  };
}

class EachField : public testing::TestWithParam<Mutation> {
 protected:
  EachField() { GetParam().apply(mutated_); }
  RunConfig mutated_ = base_config();
};

TEST_P(EachField, IsWrittenUnderItsOwnKeyAlone) {
  const json before = json::parse(to_json(base_config()));
  const json after = json::parse(to_json(mutated_));
  std::set<std::string> changed;
  for (const auto& [key, value] : after.items()) {
    if (before.at(key) != value) {
      changed.insert(key);
    }
  }
  EXPECT_EQ(changed, std::set<std::string>{GetParam().key});
}

TEST_P(EachField, IsReadBackAsItWasWritten) {
  EXPECT_EQ(to_json(run_config_from_json(to_json(mutated_))), to_json(mutated_));
}

TEST_P(EachField, IsComparedWithThePublishedOne) {
  const auto why = contradiction(mutated_, {GetParam().key}, base_config());
  ASSERT_TRUE(why.has_value());
  EXPECT_THAT(*why, HasSubstr(std::string("--") + GetParam().key + ": "));
}

// In a checkpoint that is older than the field, the field has its default.
TEST_P(EachField, MustBeThereUnlessItIsNewerThanOthers) {
  json without = json::parse(to_json(mutated_));
  without.erase(GetParam().key);
  const auto row = std::ranges::find(settings(), GetParam().key, &Setting::name);
  ASSERT_NE(row, settings().end());
  const bool is_newer = GetParam().key == std::string("bad_gradients") ||
                        GetParam().key == std::string("max_gradient_norm");
  EXPECT_EQ(row->may_be_missing, is_newer);
  if (is_newer) {
    EXPECT_EQ(to_json(run_config_from_json(without.dump())), to_json(base_config()));
    return;
  }
  EXPECT_THAT(sentence_of([&] { return run_config_from_json(without.dump()); }),
              HasSubstr(std::string("lacks --") + GetParam().key));
}

TEST_P(EachField, OfAnotherTypeIsRefusedByNameAndValue) {
  for (const json& wrong : {json(-5), json(0.25), json("no-such-name\n"), json(true),
                            json::array({"x"}), json::object({{"a", 1}}), json()}) {
    json config = json::parse(to_json(base_config()));
    const json& right = config[GetParam().key];
    const bool is_fine = wrong.type() == right.type() ||
                         (right.is_number_float() && wrong.is_number()) ||
                         (wrong.is_null() && right.is_null()) ||
                         (std::string(GetParam().key) == "max_staleness" && wrong.is_null());
    if (is_fine && !(wrong.is_string() || wrong.is_array())) {
      continue;
    }
    config[GetParam().key] = wrong;
    const std::string message = sentence_of([&] { return run_config_from_json(config.dump()); });
    EXPECT_THAT(message, HasSubstr(std::string("--") + GetParam().key + ": ")) << wrong;
    EXPECT_THAT(message, HasSubstr(" is not ")) << wrong;
    EXPECT_EQ(message.find('\n'), std::string::npos) << "one line, whatever was sent";
  }
}

INSTANTIATE_TEST_SUITE_P(RunConfig, EachField, testing::ValuesIn(mutations()),
                         [](const auto& param_info) { return param_info.param.key; });

TEST(RunConfig, NoFieldIsForgotten) {
  // This does not compile when RunConfig gains a member: add a row to settings.cc, and the member
  // here. (model, optimizer and augmentation contain several settings; the others of their members
  // are equal in all runs.) tests/main/setting_flags_test.cc checks the flags of the rows.
  [[maybe_unused]] const auto& [dataset, data_checksum, model, optimizer, rate_decay, warmup_steps,
                                isa, compute_dtype, batch_size, train_steps, sync_replicas,
                                replicas_to_aggregate, max_staleness, augmentation, seed, trainers,
                                micro_batches, min_workers, ps_replicas, wire_dtype, clip_norm,
                                max_gradient_norm, rejected_gradients, top_k, eval_every,
                                test_shifts, target_accuracy, patience, examples] = base_config();
  std::set<std::string> keys;
  const json written = json::parse(to_json(base_config()));
  for (const auto& item : written.items()) {
    keys.insert(item.key());
  }
  std::set<std::string> mutated;
  for (const Mutation& mutation : mutations()) {
    mutated.insert(mutation.key);
  }
  EXPECT_THAT(keys, testing::IsSupersetOf(mutated));
}

TEST(RunConfig, WhatIsKnownOfTheExamplesIsSavedAndNotPublished) {
  RunConfig config = base_config();
  config.examples = {.classes = {"near", "f\303\244r"},
                     .columns = {"x", "y"},
                     .label = "heap",
                     .means = {0.1F, -3},
                     .scales = {1.0F / 3, 1e-20F},
                     .target_mean = 2.5F,
                     .target_scale = 0.125F};
  EXPECT_EQ(run_config_from_json(to_saved_json(config)).examples, config.examples);
  EXPECT_EQ(run_config_from_json(to_json(config)).examples, ExampleFacts{});
  EXPECT_FALSE(json::parse(to_json(config)).contains("examples"));
  EXPECT_EQ(difference(config, to_saved_json(config)), std::nullopt);
}

TEST(RunConfig, WhatIsSavedOfExamplesIsChecked) {
  const auto refusal = [](const json& examples) -> std::string {
    json saved = json::parse(to_saved_json(base_config()));
    saved["examples"] = examples;
    return sentence_of([&] { return run_config_from_json(saved.dump()); }, "taken");
  };
  EXPECT_EQ(refusal(json::object()), "taken");
  EXPECT_THAT(refusal(json::array()), testing::HasSubstr("examples is []"));
  EXPECT_THAT(refusal({{"classes", 3}}), testing::HasSubstr("classes is 3"));
  EXPECT_THAT(refusal({{"columns", {1}}}), testing::HasSubstr("columns is 1"));
  EXPECT_THAT(refusal({{"means", {1e300}}, {"scales", {1}}}), testing::HasSubstr("means is"));
  EXPECT_THAT(refusal({{"means", {1}}, {"scales", {1, 2}}}), testing::HasSubstr("scales is 2"));
  EXPECT_THAT(refusal({{"target_scale", 0}}), testing::HasSubstr("target_scale is 0"));
  EXPECT_THAT(refusal({{"label", json::object()}}), testing::HasSubstr("label is"));
}

TEST(RunConfig, NumbersAreWrittenAsAPersonWouldWriteThem) {
  RunConfig config = base_config();
  config.optimizer.learning_rate = 0.1F;
  EXPECT_THAT(to_json(config), HasSubstr("\"learning_rate\":0.1,"));
}

TEST(RunConfig, EveryFloatSurvivesTheTrip) {
  RunConfig config = base_config();
  for (const float rate : {0.1F, 1.0F / 3.0F, 1e-45F, 3.4028235e38F, 0.002F, 16777217.0F}) {
    config.optimizer.learning_rate = rate;
    EXPECT_EQ(run_config_from_json(to_json(config)).optimizer.learning_rate, rate);
  }
}

TEST(RunConfig, AValueReadBackIsTheValueNotOnlyTheText) {
  RunConfig config = base_config();
  for (const Mutation& mutation : mutations()) {
    mutation.apply(config);
  }
  const RunConfig read = run_config_from_json(to_json(config));
  EXPECT_EQ(read.dataset, "Digits");
  EXPECT_EQ(read.data_checksum, "decaf");
  EXPECT_EQ(read.model, config.model);
  EXPECT_EQ(read.optimizer, config.optimizer);
  EXPECT_EQ(read.rate_decay, math::RateDecay::kNone);
  EXPECT_EQ(read.isa, math::Isa::kAvx2);
  EXPECT_EQ(read.compute_dtype, math::ComputeDtype::kBf16);
  EXPECT_EQ(read.batch_size, 7U);
  EXPECT_EQ(read.train_steps, kMaxCount);
  EXPECT_FALSE(read.sync_replicas);
  EXPECT_EQ(read.replicas_to_aggregate, 2U);
  EXPECT_EQ(read.max_staleness, 0U);
  EXPECT_EQ(read.trainers, 4U);
  EXPECT_EQ(read.wire_dtype, WireDtype::kBf16);
  EXPECT_EQ(read.top_k, 0.01F);
  EXPECT_EQ(read.seed, 99U);
  EXPECT_EQ(read.eval_every, 5U);
  EXPECT_EQ(read.target_accuracy, 0.5F);
  EXPECT_EQ(read.patience, 3U);
}

// ---- Bytes from a peer ----

TEST(RunConfigFromJson, RefusesWhatIsNoObject) {
  for (const char* text :
       {"", " ", "{", "[]", "null", "3", "\"x\"", "{\"a\":1}}", "\xff\xfe", "nan"}) {
    EXPECT_EQ(sentence_of([&] { return run_config_from_json(text); }),
              "the published configuration is not a JSON object")
        << text;
  }
}

TEST(RunConfigFromJson, IgnoresKeysOfLaterVersions) {
  json config = json::parse(to_json(base_config()));
  config["flux_capacitor"] = 1.21;
  EXPECT_EQ(to_json(run_config_from_json(config.dump())), to_json(base_config()));
}

std::string message_with(const char* key, const json& value) {
  json config = json::parse(to_json(base_config()));
  config[key] = value;
  return sentence_of([&] { return run_config_from_json(config.dump()); });
}

TEST(RunConfigFromJson, RefusesCountsThatJsonCannotCarryExactly) {
  EXPECT_EQ(message_with("seed", kMaxCount + 1),
            "--seed: 9007199254740993 is not a whole number from 0 to 2^53");
}

TEST(RunConfigFromJson, RefusesNumbersThatNoFloatHolds) {
  EXPECT_EQ(message_with("learning_rate", 1e39),
            "--learning_rate: 1e+39 is not a number of 32 bits");
}

TEST(RunConfigFromJson, RefusesNamesThatThisVersionDoesNotKnow) {
  EXPECT_EQ(message_with("optimizer", "lbfgs"),
            "--optimizer: \"lbfgs\" is not a name that this version knows");
  EXPECT_EQ(message_with("model", "transformer"),
            "--model: \"transformer\" is not a name that this version knows");
  EXPECT_EQ(message_with("isa", "sse"), "--isa: \"sse\" is not a name that this version knows");
}

TEST(RunConfigFromJson, RefusesTooManyLayers) {
  EXPECT_THAT(message_with("hidden_units", std::vector<int>(17, 1)),
              HasSubstr("is not a list of at most 16 layers"));
}

RunConfig config_of_layers() {
  RunConfig config = base_config();
  config.model.layers = {
      {.type = "conv2d", .name = "", .fields = {{"channels", 8.0}, {"padding", "same"}}},
      {.type = "dropout", .name = "", .fields = {{"rate", 0.1}}},
      {.type = "dense", .name = "sm", .fields = {{"units", 10.0}}}};
  return config;
}

TEST(PublishedModel, IsAListWhereItHasNoName) {
  EXPECT_EQ(json::parse(to_json(config_of_layers())).at("model").dump(),
            R"([{"channels":8,"padding":"same","type":"conv2d"},{"rate":0.1,"type":"dropout"},)"
            R"({"name":"sm","type":"dense","units":10}])");
  EXPECT_EQ(run_config_from_json(to_json(config_of_layers())).model, config_of_layers().model);
}

TEST(PublishedModel, IsShownByItsNumberOfLayersWhereItContradicts) {
  EXPECT_EQ(
      contradiction(base_config(), {"model"}, config_of_layers()).value_or(""),
      "--model: this task was given \"mlp\", the chief published a list of 3 layers; leave the "
      "flag out or give the chief's value");
}

// What a peer could send instead of layers. (validate() rejects unknown types and fields.)
TEST(PublishedModel, IsRefusedWhereItIsNoListOfLayers) {
  const json whole = json::parse(to_json(base_config()));
  const std::string no_layer = "is not a layer: a type, and fields that are numbers or words";
  const std::string word(65, 'x');
  for (const auto& [model, sentence] : std::vector<std::pair<std::string, std::string>>{
           {"[]", "[] is not a name, or a list of 1 to 63 layers"},
           {json(std::vector<json>(64, json::object())).dump(),
            "a list of 64 layers is not a name, or a list of 1 to 63 layers"},
           {"[1]", "1 " + no_layer},
           {"[{}]", no_layer},
           {R"([{"units": 3}])", no_layer},
           {R"([{"type": 3}])", no_layer},
           {R"([{"type": "relu", "name": 3}])", no_layer},
           {R"([{"type": "relu", "x": null}])", no_layer},
           {R"([{"type": "relu", "x": [1]}])", no_layer},
           {R"([{"type": ")" + word + R"("}])", no_layer},
           {R"([{"type": "relu", ")" + word + R"(": 1}])", no_layer},
           {R"([{"type": "a\nb"}])", no_layer}}) {
    json with = whole;
    with["model"] = json::parse(model);
    EXPECT_THAT(sentence_of([&] { return run_config_from_json(with.dump()); }), HasSubstr(sentence))
        << model;
  }
}

TEST(RunConfigFromJson, CutsALongValueShort) {
  EXPECT_LT(message_with("dataset", std::string(10'000, 'x')).size(), 250U);
}

TEST(RunConfigFromJson, ShowsNoNestedValue) {
  for (const Mutation& mutation : mutations()) {
    std::string text = to_json(base_config());
    text.pop_back();
    // The last of two equal keys counts.
    text += ",\"" + std::string(mutation.key) + "\":[[[]]]}";
    EXPECT_THAT(sentence_of([&] { return run_config_from_json(text); }),
                AllOf(HasSubstr(mutation.key), HasSubstr("a nested value is not")));
  }
}

TEST(RunConfigFromJson, RefusesDeepNesting) {
  for (const std::size_t depth : {11U, 4'000'000U}) {
    std::string text = to_json(base_config());
    text.pop_back();
    text += ",\"model\":" + std::string(depth, '[') + std::string(depth, ']') + "}";
    EXPECT_THAT(sentence_of([&] { return run_config_from_json(text); }),
                HasSubstr("nested too deep"));
  }
}

// ---- contradiction ----

TEST(Contradiction, NamesTheFlagAndBothValues) {
  RunConfig mine = base_config();
  mine.batch_size = 50;
  EXPECT_EQ(contradiction(mine, {"batch_size"}, base_config()),
            "--batch_size: this task was given 50, the chief published 100; leave the flag out or "
            "give the chief's value");
}

TEST(Contradiction, ShowsListsAndNamesAsTheyAreWritten) {
  RunConfig mine = base_config();
  mine.model.hidden = {128, 64};
  EXPECT_THAT(contradiction(mine, {"hidden_units"}, base_config()).value_or(""),
              HasSubstr("was given [128,64], the chief published [100]"));
}

TEST(Contradiction, IgnoresFlagsThatTheUserDidNotWrite) {
  RunConfig mine = base_config();
  mine.batch_size = 50;
  EXPECT_EQ(contradiction(mine, {"seed", "train_steps"}, base_config()), std::nullopt);
}

TEST(Contradiction, AcceptsTheChiefsOwnValues) {
  const RunConfig published = run_config_from_json(to_json(base_config()));
  std::set<std::string> all;
  for (const Mutation& mutation : mutations()) {
    all.insert(mutation.key);
  }
  EXPECT_EQ(contradiction(base_config(), all, published), std::nullopt);
}

TEST(Contradiction, IgnoresFlagsThatAreNotOfTheRun) {
  EXPECT_EQ(contradiction(base_config(), {"task_index", "log_level"}, base_config()), std::nullopt);
}

// ---- stops_alike ----

TEST(StopsAlike, WhereARunWouldHaveEndedAtTheSameEvaluation) {
  RunConfig config = base_config();
  EXPECT_FALSE(stops_alike(config, to_json(config))) << "it goes on";
  config.eval_every = 100;
  config.patience = 3;
  const std::string saved = to_json(config);
  EXPECT_TRUE(stops_alike(config, saved));
  config.train_steps += 1000;
  EXPECT_TRUE(stops_alike(config, saved)) << "that is further away";
  for (const auto change :
       {+[](RunConfig& c) { c.patience = 4; }, +[](RunConfig& c) { c.target_accuracy = 0.5F; },
        +[](RunConfig& c) { c.eval_every = 50; }, +[](RunConfig& c) { c.test_shifts = 1; }}) {
    RunConfig other = config;
    change(other);
    EXPECT_FALSE(stops_alike(other, saved)) << to_json(other);
  }
  EXPECT_FALSE(stops_alike(config, "{}")) << "of an older release";
}

TEST(EvaluatesAlike, WhereALossIsOfTheSameShifts) {
  RunConfig config = base_config();
  const std::string saved = to_json(config);
  config.eval_every = 100;
  EXPECT_TRUE(evaluates_alike(config, saved));
  config.test_shifts = 1;
  EXPECT_FALSE(evaluates_alike(config, saved));
  EXPECT_FALSE(evaluates_alike(config, "{}")) << "of an older release";
}

TEST(MissingIsa, NamesWhatTheCpuLacksAndWhatItHas) {
  RunConfig published = base_config();
  published.isa = math::Isa::kAvx512;
  const std::vector<math::Isa> old_cpu = {math::Isa::kAvx2, math::Isa::kGeneric};
  EXPECT_EQ(missing_isa(published, old_cpu),
            "--isa: the chief computes with avx512, which this CPU lacks; start the chief with "
            "--isa avx2");
  published.isa = math::Isa::kGeneric;
  EXPECT_EQ(missing_isa(published, old_cpu), std::nullopt);
}

TEST(WireDtype, HasNamesInItsOrder) {
  for (const WireDtype dtype :
       {WireDtype::kF32, WireDtype::kBf16, WireDtype::kInt8, WireDtype::kInt4}) {
    EXPECT_EQ(math::value_of<WireDtype>(kWireDtypeNames, wire_dtype_name(dtype)), dtype);
  }
}

TEST(Compress, NamesAreReadBack) {
  for (const char* name : {"none", "topk:0.01", "topk:0.5", "topk:1e-06"}) {
    EXPECT_EQ(compress_name(compress_from_name(name).value_or(-1)), name);
  }
}

TEST(Compress, TakesSharesBetween0And1Alone) {
  for (const char* name : {"", "topk", "topk:", "topk:0", "topk:-0.5", "topk:1", "topk:nan",
                           "topk:inf", "topk:0.01x", "topk: 0.01", "topk:0x1p-3", "top:0.01"}) {
    EXPECT_EQ(compress_from_name(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace disttf::roles
