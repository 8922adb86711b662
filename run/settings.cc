// The table of the settings of a run. To add one: its member in RunConfig (run_config.h), whose
// initializer is the default, and a row here with may_be_missing; then the code that uses it.
#include <map>

#include "math/augmentation.h"
#include "math/kernels.h"
#include "math/model.h"
#include "math/optimizer.h"
#include "math/rate_schedule.h"
#include "run/setting.h"
#include "text/shortest_number.h"

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
    text += (text.empty() ? "" : ", ") + shortest_number(rate) + " for " + those;
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
       .about = "a built-in model or a [file of layers](training.md#the-model); `mlp`: hidden layers with "
                "ReLU; `softmax`: no hidden layer; `lenet`: two convolutions of 5x5 and a hidden layer of "
                "1024; `cnn`: four convolutions of 3x3",
       .argument = "NAME|FILE"},
      {.name = "hidden_units",
       .value = NumberList{.field = [](auto& run) -> auto& { return run.model.hidden; },
                           .least = 1, .most = math::kMaxUnits,
                           .most_entries = math::kMaxHiddenLayers},
       .about = "`mlp`: units of each hidden layer, as in `128,128`",
       .argument = "N,..."},
      // Of an image; math::validate() has their bounds, and those of the next ones.
      {.name = "height",
       .value = WholeNumber{.field = [](auto& run) -> auto& { return run.model.input.height; }}},
      {.name = "width",
       .value = WholeNumber{.field = [](auto& run) -> auto& { return run.model.input.width; }}},
      {.name = "channels",
       .value = WholeNumber{.field = [](auto& run) -> auto& { return run.model.input.channels; }}},
      {.name = "classes",
       .value = WholeNumber{.field = [](auto& run) -> auto& { return run.model.classes; }}},
      {.name = "numbers",
       .value = Switch{[](auto& run) -> auto& { return run.model.numbers; }}},
      {.name = "optimizer",
       .value = Choice{[](auto& run) -> auto& { return run.optimizer.kind; },
                       math::optimizer_names()},
       .about = names_text(math::optimizer_names()) + ", by TensorFlow's formulas; it runs on the ps",
       .argument = "NAME"},
      {.name = "learning_rate",
       .value = Fraction{.field = [](auto& run) -> auto& { return run.optimizer.learning_rate; },
                         .range = Range::kAboveZero},
       .about = "step size",
       .argument = "RATE",
       .unset = learning_rates_text()},
      {.name = "learning_rate_decay",
       .value = Choice{[](auto& run) -> auto& { return run.rate_decay; }, math::kRateDecayNames},
       .about = "[schedule](training.md#the-optimizer) of the rate: `linear` falls to 0 at `--train_steps`; "
                "`none` is constant; `cosine` falls along half a cosine; `one_cycle` rises to the rate, then "
                "falls",
       .argument = "NAME"},
      {.name = "warmup_steps",
       .value = WholeNumber{.field = [](auto& run) -> auto& { return run.warmup_steps; }},
       .about = "global steps, of `--train_steps`, in which the rate rises linearly from 0"},
      {.name = "momentum",
       .value = Fraction{.field = [](auto& run) -> auto& { return run.optimizer.momentum; },
                         .range = Range::kZeroToBelowOne},
       .about = "coefficient of `--optimizer momentum`",
       .argument = "RATE"},
      {.name = "weight_decay",
       .value = Fraction{.field = [](auto& run) -> auto& { return run.optimizer.weight_decay; },
                         .range = Range::kZeroToBelowOne},
       .about = "[share](training.md#the-optimizer) of each weight, not of biases, added to its gradient; "
                "`adamw`: times the learning rate, subtracted at each step; 0: none",
       .argument = "RATE"},
      {.name = "ema",
       .value = Fraction{.field = [](auto& run) -> auto& { return run.optimizer.average_decay; },
                         .range = Range::kZeroToBelowOne},
       .about = "decay of the exponential [average of the weights](training.md#the-optimizer) that is the "
                "result; `0.999`: over about 1000 steps; 0: the last weights",
       .argument = "DECAY"},
      {.name = "clip_norm",
       .value = Fraction{.field = [](auto& run) -> auto& { return run.clip_norm; },
                         .range = Range::kZeroOrMore},
       .about = "largest [norm](training.md#the-optimizer) of a batch's gradient; larger ones are scaled "
                "down; 0: no limit",
       .argument = "NORM"},
      {.name = "bad_gradients",
       .value = Choice{[](auto& run) -> auto& { return run.rejected_gradients; }, kRejectedGradientsNames},
       .about = "what a ps does with a [non-finite or oversized gradient](training.md#rejected-gradients): "
                "`refuse`: reject it, and its trainer exits with 1; `count`: apply and count it",
       .argument = "NAME",
       .changes_weights = false,
       .may_be_missing = true},
      {.name = "max_gradient_norm",
       .value = Fraction{.field = [](auto& run) -> auto& { return run.max_gradient_norm; },
                         .range = Range::kZeroOrMore},
       .about = "largest [norm](training.md#rejected-gradients) of the gradient of a ps's range; larger ones are "
                "oversized; 0: no limit",
       .argument = "NORM",
       .changes_weights = false,
       .may_be_missing = true},
      {.name = "loss",
       .value = Choice{[](auto& run) -> auto& { return run.model.loss; }, math::loss_names()},
       .about = "[loss](training.md#the-loss) to minimize: " + names_text(math::loss_names()) +
                "; only the last for `--label_type number`",
       .argument = "NAME"},
      {.name = "label_smoothing",
       .value = Fraction{.field = [](auto& run) -> auto& { return run.model.label_smoothing; },
                         .range = Range::kZeroToBelowOne},
       .about = "share of each label that training [spreads evenly](training.md#the-optimizer) over all "
                "classes; 0: none",
       .argument = "SHARE"},
      {.name = "isa",
       .value = Choice{[](auto& run) -> auto& { return run.isa; }, math::kIsaNames, "auto"},
       .about = "instruction set of the arithmetic: `generic`, `avx2`, `avx512`, `neon`; `auto`: the best "
                "for the chief's CPU",
       .argument = "NAME"},
      {.name = "compute_dtype",
       .value = Choice{[](auto& run) -> auto& { return run.compute_dtype; },
                       math::kComputeDtypeNames},
       .about = "operand type of products and convolutions; sums stay float32. `bf16`: [up to twice as "
                "fast](performance.md#bfloat16) with AMX, often slower without",
       .argument = "NAME"},
      {.name = "batch_size",
       .value = WholeNumber{.field = [](auto& run) -> auto& { return run.batch_size; },
                            .least = 1, .most = kMaxBatchSize},
       .about = "images per trainer and step: " + std::to_string(kMaxBatchSize) +
                " at most; with the outputs of all layers at most 8 GiB"},
      {.name = "train_steps",
       .value = WholeNumber{.field = [](auto& run) -> auto& { return run.train_steps; },
                            .least = 1},
       .about = "global steps: parameter updates by all trainers together"},
      {.name = "sync_replicas",
       .value = Switch{[](auto& run) -> auto& { return run.sync_replicas; }},
       .about = "a step aggregates a gradient from every trainer; `=false`: each is applied on arrival",
       .other_name = "sync_replica"},
      {.name = "replicas_to_aggregate",
       .value = WholeNumber{.field = [](auto& run) -> auto& { return run.replicas_to_aggregate; },
                            .most = kMaxTrainers},
       .about = "sync: a step takes the first N gradients and drops the rest (backup workers); 0: all"},
      {.name = "max_staleness",
       .value = OptionalNumber{.field = [](auto& run) -> auto& { return run.max_staleness; }},
       .about = "async: most local steps that a trainer may be ahead of the slowest",
       .unset = "no bound"},
      {.name = "trainers",  // what the cluster may have; validate() has its bounds
       .value = WholeNumber{.field = [](auto& run) -> auto& { return run.trainers; }}},
      {.name = "micro_batches",
       .value = WholeNumber{.field = [](auto& run) -> auto& { return run.micro_batches; },
                            .least = 1, .most = kMaxTrainers, .zero_is_unset = true},
       .about = "batches of `--batch_size` images per step, whichever trainers compute them; their gradients "
                "must fit into 64 GiB",
       .unset = "one per trainer that the cluster may have",
       .group = SettingGroup::kElastic},
      {.name = "min_workers",
       .value = WholeNumber{.field = [](auto& run) -> auto& { return run.min_workers; },
                            .least = 1, .most = kMaxTrainers, .zero_is_unset = true},
       .about = "fewest workers with which the run continues",
       .unset = "1",
       .group = SettingGroup::kElastic},
      {.name = "ps_replicas",
       .value = WholeNumber{.field = [](auto& run) -> auto& { return run.ps_replicas; },
                            .least = 1, .most = kMaxPsReplicas},
       .about = "copies of each range, 1 or 2; with 2 the loss of a ps loses no update and rolls nothing back",
       .changes_weights = false},
      {.name = "wire_dtype",
       .value = Choice{[](auto& run) -> auto& { return run.wire_dtype; }, kWireDtypeNames},
       .about = "rounding of gradients and parameters on the wire; `bf16`, `int8`, `int4`: [a half, a quarter, "
                "a seventh of the bytes](operations.md#slow-links)",
       .argument = "NAME"},
      {.name = "compress",
       .value = Compression{[](auto& run) -> auto& { return run.top_k; }},
       .about = "`topk:0.01`: push the largest hundredth of each gradient, keep the rest for the next; `none`: "
                "push all",
       .argument = "NAME"},
      {.name = "augment_shift",
       .value = Fraction{.field = [](auto& run) -> auto& { return run.augmentation.shift; },
                         .range = Range::kZeroToBelowOne},
       .about = "shift by at most this share of width and height",
       .argument = "SHARE",
       .group = SettingGroup::kAugmentation},
      {.name = "augment_rotate",
       .value = WholeNumber{.field = [](auto& run) -> auto& { return run.augmentation.rotate; },
                            .most = math::kMostDegrees},
       .about = "rotate by at most so many degrees either way",
       .argument = "DEGREES",
       .group = SettingGroup::kAugmentation},
      {.name = "augment_scale",
       .value = Fraction{.field = [](auto& run) -> auto& { return run.augmentation.scale; },
                         .range = Range::kZeroToBelowOne},
       .about = "scale up or down by at most this share",
       .argument = "SHARE",
       .group = SettingGroup::kAugmentation},
      {.name = "augment_shear",
       .value = Fraction{.field = [](auto& run) -> auto& { return run.augmentation.shear; },
                         .range = Range::kZeroToBelowOne},
       .about = "shear: move a row by at most this share of its distance from the middle",
       .argument = "SHARE",
       .group = SettingGroup::kAugmentation},
      {.name = "augment_elastic",
       .value = Fraction{.field = [](auto& run) -> auto& { return run.augmentation.elastic; },
                         .range = Range::kZeroToBelowOne},
       .about = "distort: move the points of a grid of 4x4 cells by at most this share of a cell",
       .argument = "SHARE",
       .group = SettingGroup::kAugmentation},
      {.name = "augment_cutout",
       .value = Fraction{.field = [](auto& run) -> auto& { return run.augmentation.cutout; },
                         .range = Range::kZeroToBelowOne},
       .about = "blacken a square of this share of the smaller side at a random position",
       .argument = "SHARE",
       .group = SettingGroup::kAugmentation},
      {.name = "augment_flip",
       .value = Switch{[](auto& run) -> auto& { return run.augmentation.flip; }},
       .about = "mirror every second image, at random, left to right",
       .group = SettingGroup::kAugmentation},
      {.name = "seed",
       .value = WholeNumber{.field = [](auto& run) -> auto& { return run.seed; }},
       .about = "seed of initial values, image order and all other randomness"},
      {.name = "eval_every",
       .value = WholeNumber{.field = [](auto& run) -> auto& { return run.eval_every; }},
       .about = "global steps between evaluations by the chief; 0: at the end only",
       .group = SettingGroup::kOutput,
       .changes_weights = false},
      {.name = "test_shifts",
       .value = WholeNumber{.field = [](auto& run) -> auto& { return run.test_shifts; },
                            .most = math::kMostTestShift},
       .about = "test-time augmentation: average the outputs over [shifts](training.md#results) by up to N "
                "pixels (5 images for 1, 13 for 2); 0: none",
       .group = SettingGroup::kOutput,
       .changes_weights = false},
      {.name = "target_accuracy",
       .value = Fraction{.field = [](auto& run) -> auto& { return run.target_accuracy; },
                         .range = Range::kZeroToBelowOne},
       .about = "[stop early](training.md#early-stopping) at this validation accuracy: when an intermediate "
                "evaluation (`--eval_every`) reaches it; 0: off",
       .argument = "SHARE"},
      {.name = "patience",
       .value = WholeNumber{.field = [](auto& run) -> auto& { return run.patience; }},
       .about = "[stop early](training.md#early-stopping) after N intermediate evaluations without a better "
                "validation loss; 0: off"},
  };
// clang-format on
}

}  // namespace

std::span<const Setting> settings() {
  // Built at the first use: some texts are composed from other modules' tables.
  static const std::vector<Setting> kSettings = make_settings();
  return kSettings;
}

}  // namespace disttf::roles
