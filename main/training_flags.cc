#include "main/training_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <stdexcept>

#include "math/losses/registry.h"
#include "net/wire/text.h"
#include "roles/store/core/store_url.h"
#include "roles/store/shell/storage.h"

namespace disttf {
namespace {

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
void check(roles::RunConfig config, bool is_own_data) {
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

void refuse_isa(const std::string& name) {
  std::string allowed = "auto";
  for (const math::Isa each : math::supported_isas()) {
    allowed += ", " + std::string(math::isa_name(each));
  }
  throw std::invalid_argument("--isa: \"" + name + "\" is not one that this CPU has: " + allowed);
}

roles::RunConfig run_config(const Flags& flags, std::size_t ps, std::size_t trainers) {
  const WrittenSettings& settings = flags.settings;
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
  const bool is_open = flags.max_workers != 0;
  // A fixed number of gradients for each step contradicts a number of workers that changes.
  if (is_open && config.replicas_to_aggregate != 0) {
    throw std::invalid_argument("--max_workers: " + std::to_string(flags.max_workers) +
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
  check(config, !flags.own_data.path.empty());
  return config;
}

std::size_t most_trainers(const Flags& flags, std::size_t workers, bool chief) {
  if (flags.max_workers != 0 && flags.max_workers < workers) {
    throw std::invalid_argument("--max_workers: " + std::to_string(flags.max_workers) +
                                " is less than the " + std::to_string(workers) + " of --workers");
  }
  // A chief trains and counts, but --max_workers is about workers only.
  return std::max(flags.max_workers, workers) + (chief ? 1 : 0);
}

void check_checkpoint_flags(const Flags& flags) {
  if (flags.sharded_checkpoint && flags.train_dir.empty()) {
    throw std::invalid_argument(
        "--sharded_checkpoint: true is not allowed without --train_dir, the directory that chief "
        "and ps share");
  }
  // A URL of an unknown or read-only store is reported before anything starts, not at the first
  // save.
  roles::check_place_to_write("--train_dir", flags.train_dir);
  roles::check_place_to_write("--log_dir", flags.log_dir);
}

std::vector<std::string> arguments_for_children(const CLI::App& app) {
  std::vector<std::string> arguments;
  for (const CLI::Option* option : app.get_options()) {
    // By group: flags that say what to start or where are for this process, all others are for the
    // tasks. Defaults are left out, so the tasks' own apply.
    if (option->count() == 0 || option->get_group() == kLaunchGroup ||
        option->get_group() == kCommandGroup || option->get_group() == kPageGroup ||
        option->get_group() == kProgramGroup || option->get_group() == kClusterGroup ||
        option->get_group() == kFindGroup || option->get_group() == kRenderGroup ||
        option == app.get_config_ptr() || option == app.get_help_ptr() ||
        option == app.get_help_all_ptr()) {
      continue;
    }
    std::string value;
    for (const std::string& part : option->results()) {
      value += (value.empty() ? "" : ",") + part;
    }
    arguments.push_back("--" + option->get_lnames().front() + "=" + value);
  }
  return arguments;
}

std::vector<std::string> arguments_for_tasks(const CLI::App& app) {
  std::vector<std::string> arguments = arguments_for_children(app);
  std::erase_if(arguments, [](const std::string& word) {
    // A flag given twice is an error, and the server adds the driver's values.
    return word.starts_with("--peer_timeout=") || word.starts_with("--heartbeat_timeout=");
  });
  return arguments;
}

}  // namespace disttf
