// The table of the settings of a run. To add one: its member in RunConfig (run_config.h), whose
// initializer is the default, and a row here with may_be_missing; then the code that uses it.
#include <map>

#include "math/kernels.h"
#include "math/model.h"
#include "math/optimizer.h"
#include "math/rate_schedule.h"
#include "math/test_shifts.h"
#include "roles/run/setting.h"

namespace disttf::roles {
namespace {

using Range = Fraction::Range;

// "`sgd`, `momentum`, `adagrad` or `adam`"
std::string names_text(std::span<const std::string_view> names) {
  std::string text;
  for (std::size_t each = 0; each < names.size(); ++each) {
    const char* const separator = each == 0 ? "" : each + 1 == names.size() ? " or " : ", ";
    text += separator + ("`" + std::string(names[each]) + "`");
  }
  return text;
}

// "0.01 for adam, 0.1 for momentum and adagrad, 0.5 for sgd; a tenth of it for ..."
std::string learning_rates_text() {
  std::map<float, std::string> optimizers;  // by rate
  for (const std::string_view name : math::optimizer_names()) {
    std::string& those = optimizers[math::default_learning_rate(*math::optimizer_from_name(name))];
    those += (those.empty() ? "" : " and ") + std::string(name);
  }
  std::string text;
  for (const auto& [rate, those] : optimizers) {
    text += (text.empty() ? "" : ", ") + shortest_text(rate) + " for " + those;
  }
  return text + "; a tenth of it for lenet and cnn";
}

std::vector<Setting> make_settings() {
  // clang-format off
  return {
      // Values that the tasks find out: no flags.
      {.name = "dataset",
       .value = Word{[](auto& run) -> auto& { return run.dataset; }}},
      {.name = "data_checksum",
       .value = Word{[](auto& run) -> auto& { return run.data_checksum; }}},

      {.name = "model",
       .value = Model{[](auto& run) -> auto& { return run.model; }},
       .about = "`mlp`: hidden layers with ReLU; `softmax`: no hidden layer; `lenet`: two convolutions of "
                "5x5 and a hidden layer of 1024; `cnn`: four convolutions of 3x3; or a [file of layers]"
                "(training.md#the-model), `model.toml`",
       .argument = "NAME|FILE"},
      {.name = "hidden_units",
       .value = NumberList{.place = [](auto& run) -> auto& { return run.model.hidden; },
                           .least = 1, .most = math::kMaxUnits,
                           .most_entries = math::kMaxHiddenLayers},
       .about = "of `--model mlp`: units of each hidden layer, `128,128`",
       .argument = "N,..."},
      // Of an image; math::validate() has their bounds, and those of the next ones.
      {.name = "height",
       .value = WholeNumber{.place = [](auto& run) -> auto& { return run.model.input.height; }}},
      {.name = "width",
       .value = WholeNumber{.place = [](auto& run) -> auto& { return run.model.input.width; }}},
      {.name = "channels",
       .value = WholeNumber{.place = [](auto& run) -> auto& { return run.model.input.channels; }}},
      {.name = "classes",
       .value = WholeNumber{.place = [](auto& run) -> auto& { return run.model.classes; }}},
      {.name = "numbers",
       .value = Switch{[](auto& run) -> auto& { return run.model.numbers; }}},
      {.name = "optimizer",
       .value = Choice{[](auto& run) -> auto& { return run.optimizer.kind; },
                       math::optimizer_names()},
       .about = names_text(math::optimizer_names()) + ", by TensorFlow's formulas; it runs on the ps",
       .argument = "NAME"},
      {.name = "learning_rate",
       .value = Fraction{.place = [](auto& run) -> auto& { return run.optimizer.learning_rate; },
                         .range = Range::kAboveZero},
       .about = "how far a step goes",
       .argument = "RATE",
       .unset = learning_rates_text()},
      {.name = "learning_rate_decay",
       .value = Choice{[](auto& run) -> auto& { return run.rate_decay; }, math::kRateDecayNames},
       .about = "[how the rate moves](training.md#the-optimizer): `linear` falls evenly to 0 at "
                "`--train_steps`; `none` stays; `cosine` falls along half a cosine; `one_cycle` "
                "rises to the rate, then falls",
       .argument = "NAME"},
      {.name = "warmup_steps",
       .value = WholeNumber{.place = [](auto& run) -> auto& { return run.warmup_steps; }},
       .about = "first global steps, of `--train_steps`, in which the rate rises evenly from 0"},
      {.name = "momentum",
       .value = Fraction{.place = [](auto& run) -> auto& { return run.optimizer.momentum; },
                         .range = Range::kZeroToBelowOne},
       .about = "of `--optimizer momentum`",
       .argument = "RATE"},
      {.name = "weight_decay",
       .value = Fraction{.place = [](auto& run) -> auto& { return run.optimizer.weight_decay; },
                         .range = Range::kZeroToBelowOne},
       .about = "[share](training.md#the-optimizer) of each weight, not of biases, that is added to "
                "its gradient; with `adamw` each step takes it, times the learning rate, away; 0: none",
       .argument = "RATE"},
      {.name = "ema",
       .value = Fraction{.place = [](auto& run) -> auto& { return run.optimizer.average_decay; },
                         .range = Range::kZeroToBelowOne},
       .about = "`0.999`: the result is the [average of the weights](training.md#the-optimizer) "
                "over about the last 1000 steps, decaying exponentially; 0: the last weights",
       .argument = "DECAY"},
      {.name = "clip_norm",
       .value = Fraction{.place = [](auto& run) -> auto& { return run.clip_norm; },
                         .range = Range::kZeroOrMore},
       .about = "the largest [norm](training.md#the-optimizer) of the gradient of a batch: a "
                "larger gradient is scaled to it; 0: no limit",
       .argument = "NORM"},
      {.name = "bad_gradients",
       .value = Choice{[](auto& run) -> auto& { return run.bad_gradients; }, kBadGradientsNames},
       .about = "what a ps does with a [gradient](training.md#rejected-gradients) that has "
                "non-finite values or a norm above `--max_gradient_norm`: `refuse`: it is not "
                "used, and its trainer ends with 1; `count`: it is used, and counted",
       .argument = "NAME",
       .changes_weights = false,
       .may_be_missing = true},
      {.name = "max_gradient_norm",
       .value = Fraction{.place = [](auto& run) -> auto& { return run.max_gradient_norm; },
                         .range = Range::kZeroOrMore},
       .about = "the largest norm of a [gradient](training.md#rejected-gradients) that a ps "
                "accepts, over its range; 0: no limit",
       .argument = "NORM",
       .changes_weights = false,
       .may_be_missing = true},
      {.name = "loss",
       .value = Choice{[](auto& run) -> auto& { return run.model.loss; }, math::loss_names()},
       .about = "the function that training [minimizes](training.md#the-loss): " + names_text(math::loss_names()) +
                "; for numeric labels (`--label_type number`) the last one",
       .argument = "NAME"},
      {.name = "label_smoothing",
       .value = Fraction{.place = [](auto& run) -> auto& { return run.model.label_smoothing; },
                         .range = Range::kZeroToBelowOne},
       .about = "`0.1`: in training a tenth of what each label says is [spread evenly]"
                "(training.md#the-optimizer) over all classes; 0: none",
       .argument = "SHARE"},
      {.name = "isa",
       .value = Choice{[](auto& run) -> auto& { return run.isa; }, math::kIsaNames, "auto"},
       .about = "instruction set of the arithmetic: `generic`, `avx2`, `avx512`, `neon`; `auto`: the best "
                "for the chief's CPU",
       .argument = "NAME"},
      {.name = "compute_dtype",
       .value = Choice{[](auto& run) -> auto& { return run.compute_dtype; },
                       math::kComputeDtypeNames},
       .about = "what the operands of products and convolutions are rounded to, sums stay "
                "float32; `bf16`: [up to twice as fast](performance.md#bfloat16) where the "
                "CPU has AMX; slower where it has nothing for it, and where most products are a first "
                "dense layer's, of images whose pixels are mostly 0",
       .argument = "NAME"},
      {.name = "batch_size",
       .value = WholeNumber{.place = [](auto& run) -> auto& { return run.batch_size; },
                            .least = 1, .most = kMaxBatchSize},
       .about = "images per trainer and step: " + std::to_string(kMaxBatchSize) +
                " at most, and no more than fit into 8 GiB with the outputs of all layers"},
      {.name = "train_steps",
       .value = WholeNumber{.place = [](auto& run) -> auto& { return run.train_steps; },
                            .least = 1},
       .about = "global steps: updates of the parameters, by all trainers together"},
      {.name = "sync_replicas",
       .value = Switch{[](auto& run) -> auto& { return run.sync_replicas; }},
       .about = "a step takes a gradient from every trainer; `=false`: each is applied as it comes",
       .other_name = "sync_replica"},
      {.name = "replicas_to_aggregate",
       .value = WholeNumber{.place = [](auto& run) -> auto& { return run.replicas_to_aggregate; },
                            .most = kMaxTrainers},
       .about = "sync: the first N gradients make a step, late ones are dropped (backup workers); "
                "0: all"},
      {.name = "max_staleness",
       .value = OptionalNumber{.place = [](auto& run) -> auto& { return run.max_staleness; }},
       .about = "async: no trainer may be more than N steps of its own ahead of the slowest",
       .unset = "no bound"},
      {.name = "trainers",  // what the cluster may have; validate() has its bounds
       .value = WholeNumber{.place = [](auto& run) -> auto& { return run.trainers; }}},
      {.name = "micro_batches",
       .value = WholeNumber{.place = [](auto& run) -> auto& { return run.micro_batches; },
                            .least = 1, .most = kMaxTrainers, .zero_is_unset = true},
       .about = "batches of `--batch_size` images that make a step, on whichever trainers (their "
                "gradients fit into 64 GiB)",
       .unset = "one for each trainer that the cluster may have",
       .group = SettingGroup::kElastic},
      {.name = "min_workers",
       .value = WholeNumber{.place = [](auto& run) -> auto& { return run.min_workers; },
                            .least = 1, .most = kMaxTrainers, .zero_is_unset = true},
       .about = "the run goes on while at least this many workers are connected",
       .unset = "1",
       .group = SettingGroup::kElastic},
      {.name = "ps_replicas",
       .value = WholeNumber{.place = [](auto& run) -> auto& { return run.ps_replicas; },
                            .least = 1, .most = kMaxPsReplicas},
       .about = "ps that hold each range, 1 or 2: with 2 the loss of a ps neither loses an "
                "update nor rolls the run back",
       .changes_weights = false},
      {.name = "wire_dtype",
       .value = Choice{[](auto& run) -> auto& { return run.wire_dtype; }, kWireDtypeNames},
       .about = "what gradients and parameters are rounded to where they are sent; `bf16`, `int8`, "
                "`int4`: [a half, a quarter, a seventh of the bytes](operations.md#slow-links)",
       .argument = "NAME"},
      {.name = "compress",
       .value = Compression{[](auto& run) -> auto& { return run.top_k; }},
       .about = "`topk:0.01`: of each gradient a trainer pushes the largest hundredth and keeps the "
                "others for the next; `none`: all",
       .argument = "NAME"},
      {.name = "augment_shift",
       .value = Fraction{.place = [](auto& run) -> auto& { return run.augmentation.shift; },
                         .range = Range::kZeroToBelowOne},
       .about = "moved by at most this share of the width and of the height",
       .argument = "SHARE",
       .group = SettingGroup::kAugmentation},
      {.name = "augment_rotate",
       .value = WholeNumber{.place = [](auto& run) -> auto& { return run.augmentation.rotate; },
                            .most = math::kMostDegrees},
       .about = "rotated by at most this many degrees, either way",
       .argument = "DEGREES",
       .group = SettingGroup::kAugmentation},
      {.name = "augment_scale",
       .value = Fraction{.place = [](auto& run) -> auto& { return run.augmentation.scale; },
                         .range = Range::kZeroToBelowOne},
       .about = "0.1: made up to a tenth larger or smaller",
       .argument = "SHARE",
       .group = SettingGroup::kAugmentation},
      {.name = "augment_shear",
       .value = Fraction{.place = [](auto& run) -> auto& { return run.augmentation.shear; },
                         .range = Range::kZeroToBelowOne},
       .about = "slanted: a row moves by at most this share of its distance from the middle",
       .argument = "SHARE",
       .group = SettingGroup::kAugmentation},
      {.name = "augment_elastic",
       .value = Fraction{.place = [](auto& run) -> auto& { return run.augmentation.elastic; },
                         .range = Range::kZeroToBelowOne},
       .about = "bent: the points of a grid of 4x4 cells move by at most this share of a cell",
       .argument = "SHARE",
       .group = SettingGroup::kAugmentation},
      {.name = "augment_cutout",
       .value = Fraction{.place = [](auto& run) -> auto& { return run.augmentation.cutout; },
                         .range = Range::kZeroToBelowOne},
       .about = "a square of this share of the smaller side, at a random place, is blackened",
       .argument = "SHARE",
       .group = SettingGroup::kAugmentation},
      {.name = "augment_flip",
       .value = Switch{[](auto& run) -> auto& { return run.augmentation.flip; }},
       .about = "every second image, at random, is mirrored, left to right",
       .group = SettingGroup::kAugmentation},
      {.name = "seed",
       .value = WholeNumber{.place = [](auto& run) -> auto& { return run.seed; }},
       .about = "of the initial values, of the order of the images and of all else that is random"},
      {.name = "eval_every",
       .value = WholeNumber{.place = [](auto& run) -> auto& { return run.eval_every; }},
       .about = "global steps between evaluations by the chief; 0: at the end only",
       .group = SettingGroup::kOutput,
       .changes_weights = false},
      {.name = "test_shifts",
       .value = WholeNumber{.place = [](auto& run) -> auto& { return run.test_shifts; },
                            .most = math::kMostTestShift},
       .about = "test-time augmentation: an image is judged by the mean of the outputs for it as it is and "
                "[shifted](training.md#results) by up to N pixels, 5 images for 1, 13 for 2; 0: as it is",
       .group = SettingGroup::kOutput,
       .changes_weights = false},
      {.name = "target_accuracy",
       .value = Fraction{.place = [](auto& run) -> auto& { return run.target_accuracy; },
                         .range = Range::kZeroToBelowOne},
       .about = "the run [ends](training.md#early-stopping), for all tasks, when an intermediate "
                "evaluation, `--eval_every`, finds this accuracy on the validation set; 0: at "
                "`--train_steps` only",
       .argument = "SHARE"},
      {.name = "patience",
       .value = WholeNumber{.place = [](auto& run) -> auto& { return run.patience; }},
       .about = "the run [ends](training.md#early-stopping), for all tasks, when the loss on the "
                "validation set has not improved in N intermediate evaluations; 0: at "
                "`--train_steps` only"},
  };
// clang-format on
}

}  // namespace

std::span<const Setting> settings() {
  static const std::vector<Setting> kSettings = make_settings();
  return kSettings;
}

}  // namespace disttf::roles
