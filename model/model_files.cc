#include "model/model_files.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "math/optimizer.h"
#include "net/wire/text.h"
#include "run/outcome.h"
#include "run/process/log.h"
#include "run/process/resource_limits.h"
#include "storage/checkpoint/core/checkpoint_reader.h"
#include "storage/checkpoint/shell/checkpoint_command.h"
#include "storage/store/shell/storage.h"

namespace disttf::roles {
namespace {

// Parses the run's configuration in the index; one of another release may be malformed.
RunConfig config_in(const CheckpointReader& reader) {
  try {
    RunConfig config = run_config_from_json(reader.index().config_json);
    // Its sizes are used for allocations, and the file may be damaged or made by hand.
    math::validate(config.model);
    return config;
  } catch (const std::invalid_argument& error) {
    throw Failure(kUsage, net::quoted(reader.path().string()) +
                              ": this release cannot read its configuration: " + error.what());
  }
}

// Throws unless the tensors are those of the configured model.
void check_layout(const CheckpointReader& reader, const RunConfig& config) {
  const math::ParameterLayout& found = reader.index().layout;
  const math::ParameterLayout expected = math::layout_of(config.model);
  bool is_same =
      found.size() == expected.size() && found.variables().size() == expected.variables().size();
  for (std::size_t i = 0; is_same && i < found.variables().size(); ++i) {
    is_same = found.variables()[i].name == expected.variables()[i].name &&
              found.variables()[i].shape == expected.variables()[i].shape;
  }
  if (!is_same) {
    throw DamagedCheckpoint(reader.path().string() +
                            ": its tensors are not those of the model in its configuration");
  }
}

}  // namespace

bool is_result_of_run(const CheckpointIndex& index) {
  // With early stopping a run ends before train_steps, at the step that its state names.
  const bool has_ended_early =
      index.early_stop_state.step != 0 && index.early_stop_state.step == index.step;
  return has_ended_early || index.step >= run_config_from_json(index.config_json).train_steps;
}

TrainedModel read_checkpoint_model(const std::filesystem::path& path) {
  Storage disk;
  const CheckpointReader reader(disk, path);
  TrainedModel model;
  model.config = config_in(reader);
  check_layout(reader, model.config);
  const ExampleFacts& facts = model.config.examples;
  // Predicting from a table by column names needs one mean per input, also for images.
  if (!facts.means.empty() && facts.means.size() != model.config.model.input.size()) {
    throw DamagedCheckpoint(path.string() + ": it has " + std::to_string(facts.means.size()) +
                            " means for " + std::to_string(model.config.model.input.size()) +
                            " columns");
  }
  // After the checks: the index is small, the weights are not.
  require_memory(
      (1 + reader.index().optimizer.size()) * reader.index().layout.size() * sizeof(float),
      "this process", "the tensors of " + path.string());
  TrainingState state = reader.read();
  model.step = state.step;
  model.accuracy = reader.index().accuracy;
  model.is_result = is_result_of_run(reader.index());
  // With --ema the run evaluates the averages, so they are its result.
  const auto average =
      std::ranges::find(state.optimizer, math::kAverageName, &TrainingState::Tensor::name);
  model.parameters =
      std::move(average == state.optimizer.end() ? state.parameters : average->values);
  model.weights_sha256 = weights_hash(reader.index().layout, model.parameters.span());
  return model;
}

TrainedModel read_model(const std::filesystem::path& path) {
  const std::vector<std::filesystem::path> paths = checkpoints_at(path);
  if (paths.empty()) {
    throw Failure(kUsage,
                  net::quoted(path.string()) +
                      " contains no model; must be a checkpoint or a --train_dir with checkpoints");
  }
  for (const std::filesystem::path& each : paths) {
    try {
      return read_checkpoint_model(each);
    } catch (const DamagedCheckpoint& damaged) {
      // The next older checkpoint may be whole, as for a run that restores.
      log_warning(damaged.what());
    } catch (const std::system_error& error) {
      log_warning(error.what());
    }
  }
  throw Failure(kBadData, "every checkpoint is damaged in " + path.string());
}

}  // namespace disttf::roles
