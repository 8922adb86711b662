#include "main/flags/training.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <stdexcept>
#include <string>

#include "main/flags/cluster.h"
#include "math/losses/registry.h"
#include "net/wire/text.h"

namespace disttf {
namespace {

constexpr const char* kTraining =
    "Training (the chief's values apply; a worker may omit them, a ps ignores them)";
constexpr const char* kAugmentation = "Augmentation: random changes of each training image";
constexpr const char* kElastic =
    "Elastic workers: either flag lets listed workers join and leave (sync)";

math::Isa isa_of(const WrittenSettings& settings) {
  const auto supported = math::supported_isas();
  // The list is ordered by preference: the best set of this CPU is first.
  if (!settings.has("isa")) {
    return supported.front();
  }
  const math::Isa isa = settings.run.isa;
  if (std::find(supported.begin(), supported.end(), isa) == supported.end()) {
    refuse_isa(std::string(math::isa_name(isa)));
  }
  return isa;
}

// Checks `config` before the data is opened. A user's own data decides inputs and outputs, so the
// chief checks that model after opening it.
void check_early(roles::RunConfig config, bool is_own_data) {
  if (is_own_data) {
    config.model = {.label_smoothing = config.model.label_smoothing};
  } else if (math::loss_type(config.model.loss).of_numbers) {
    throw std::invalid_argument("--loss: " + net::quoted(math::loss_type(config.model.loss).name) +
                                " is allowed for labels that are numbers: --data with "
                                "--label_type number");
  }
  roles::validate(config);
}

}  // namespace

void TrainingFlags::add_model(CLI::App& app) {
  add_setting_flags(app, roles::SettingGroup::kTraining, kTraining, settings);
}

void TrainingFlags::add_to(CLI::App& app) {
  using roles::SettingGroup;
  add_model(app);
  add_setting_flags(app, SettingGroup::kAugmentation, kAugmentation, settings);
  add_setting_flags(app, SettingGroup::kElastic, kElastic, settings);
  // In another group than for serve, where the flag describes the cluster to follow.
  add_max_workers(app, max_workers, kElastic);
}

roles::RunConfig TrainingFlags::run_config(std::size_t ps, std::size_t trainers,
                                           bool has_own_data) const {
  roles::RunConfig config = settings.run;
  // Each copy of a range is on another ps.
  if (config.ps_replicas > ps) {
    throw std::invalid_argument("--ps_replicas: " + std::to_string(config.ps_replicas) +
                                " is more than the " + std::to_string(ps) +
                                " ps that the cluster has");
  }
  // The usual rate depends on two other flags, so no flag's default can hold it.
  if (!settings.has("learning_rate")) {
    config.optimizer.learning_rate =
        math::default_learning_rate(config.optimizer.kind, math::is_convolutional(config.model));
  }
  config.isa = isa_of(settings);
  config.trainers = trainers;
  const bool is_open = max_workers.has_value();
  // A fixed number of gradients for each step contradicts a number of workers that changes.
  if (is_open && config.replicas_to_aggregate != 0) {
    throw std::invalid_argument("--max_workers: " + std::to_string(*max_workers) +
                                " is not allowed with --replicas_to_aggregate");
  }
  // In asynchronous training another worker changes no share, so it needs no micro-batches.
  if (config.min_workers != 0 || config.micro_batches != 0 || (is_open && config.sync_replicas)) {
    config.min_workers = std::max<std::size_t>(config.min_workers, 1);
    config.micro_batches = config.micro_batches != 0 ? config.micro_batches : trainers;
    if (config.min_workers > trainers) {
      throw std::invalid_argument("--min_workers: " + std::to_string(config.min_workers) +
                                  " is more than the " + std::to_string(trainers) +
                                  " trainers that the cluster has");
    }
  }
  check_early(config, has_own_data);
  return config;
}

std::size_t TrainingFlags::most_trainers(std::size_t workers, bool chief) const {
  if (max_workers && *max_workers < workers) {
    throw std::invalid_argument("--max_workers: " + std::to_string(*max_workers) +
                                " is less than the " + std::to_string(workers) + " of --workers");
  }
  // A chief trains and counts, but --max_workers is about workers only.
  return max_workers.value_or(workers) + (chief ? 1 : 0);
}

void refuse_isa(const std::string& name) {
  std::string allowed = "auto";
  for (const math::Isa each : math::supported_isas()) {
    allowed += ", " + std::string(math::isa_name(each));
  }
  throw std::invalid_argument("--isa: \"" + name + "\" is not one that this CPU has: " + allowed);
}

}  // namespace disttf
