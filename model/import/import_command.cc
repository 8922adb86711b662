#include "model/import/import_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "data/file.h"
#include "data/file_system.h"
#include "net/wire/text.h"
#include "run/outcome.h"
#include "run/process/log.h"
#include "run/process/machine.h"
#include "run/process/resource_limits.h"
#include "storage/checkpoint/core/checkpoint_reader.h"
#include "storage/checkpoint/core/checkpoint_store.h"
#include "storage/store/shell/storage.h"

namespace disttf::roles {
namespace {

// The largest parameter vector, and the same again for everything else in the file.
constexpr std::size_t kMostImportBytes = 2 * kMaxParameters * sizeof(float);
constexpr const char* kLayersName = "model.toml";

std::vector<std::uint8_t> read_or_fail(const std::filesystem::path& file) {
  try {
    std::error_code error;  // read_file() reports it
    if (const auto bytes = std::filesystem::file_size(file, error); !error) {
      require_memory(std::min<std::uint64_t>(bytes, kMostImportBytes), "this process",
                     file.string());
    }
    return data::read_file(file, kMostImportBytes);
  } catch (const std::system_error& error) {
    throw Failure(kBadData, error.what());
  }
}

ImportedModel import_or_fail(const ImportOptions& options) {
  const std::vector<std::uint8_t> bytes = read_or_fail(options.file);
  ImportWishes wishes = options.wishes;
  wishes.require_memory = [](std::uint64_t needed) {
    require_memory(needed, "this process", "the parameters of the model");
  };
  try {
    return import_model(bytes, net::one_line(options.file.string()), wishes);
  } catch (const std::invalid_argument& error) {
    const std::string sentence = error.what();
    // A message about a flag begins with the flag. All others are about the file.
    throw Failure(sentence.starts_with("--") ? kUsage : kBadData, sentence);
  }
}

// The flags with which the next run names the model; `--model FILE` for a model file.
std::string named_model(const math::ModelSpec& model) {
  if (!model.layers.empty()) {
    return " --model FILE";
  }
  std::string flags = " --model " + std::string(math::model_name(model.kind));
  std::string separator = " --hidden_units ";
  for (const std::size_t units :
       model.kind == math::ModelKind::kMlp ? model.hidden : std::vector<std::size_t>{}) {
    flags += separator + std::to_string(units);
    separator = ",";
  }
  return flags;
}

}  // namespace

int run_import(const ImportOptions& options) {
  Storage disk;
  const auto existing = checkpoints_in(disk, options.train_dir);
  // Before reading the file, which may be large.
  if (!existing.empty()) {
    throw Failure(kUsage, "--train_dir: " + net::quoted(options.train_dir.string()) + " has " +
                              to_string(existing.front()) +
                              ", from which a run would continue; must have no checkpoint");
  }
  ImportedModel imported = import_or_fail(options);
  // After the whole import has succeeded: warnings about a refused file would distract.
  for (const std::string& note : imported.notes) {
    log_warning(note);
  }
  const RunConfig& config = imported.model.config;
  const math::ParameterLayout layout = math::layout_of(config.model);
  data::create_directories(disk, options.train_dir);
  std::string next = "disttf launch --train_dir " + options.train_dir.string();
  // Before the checkpoint: once there is one, a second import is refused.
  if (imported.has_layers) {
    const std::string layers = to_model_file(config.model.layers);
    data::write_durably(disk, options.train_dir / kLayersName, std::array{data::bytes_in(layers)});
    next += " --model " + (options.train_dir / kLayersName).string();
  } else {
    next += named_model(config.model);
  }
  const TrainingState state{.parameters = std::move(imported.model.parameters)};
  CheckpointStore(disk, options.train_dir)
      .save(random_number(), state, layout, to_saved_json(config), 0);
  print_result(fmt::format("Imported {} parameters of {}, weights {:.8}; continue with: {}",
                           layout.parameter_count(), math::describe(config.model),
                           imported.model.weights_sha256, net::one_line(next)));
  return kDone;
}

}  // namespace disttf::roles
