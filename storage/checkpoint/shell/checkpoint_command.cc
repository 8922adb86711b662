#include "storage/checkpoint/shell/checkpoint_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <vector>

#include "data/json/json_text.h"
#include "net/wire/text.h"
#include "run/outcome.h"
#include "run/process/log.h"
#include "run/run_config.h"
#include "storage/checkpoint/core/checkpoint_reader.h"
#include "storage/store/shell/storage.h"

namespace disttf::roles {
namespace {

using Path = std::filesystem::path;

bool is_one_checkpoint(const Path& directory) {
  // "DIR/" has an empty last name.
  const Path named = directory.has_filename() ? directory : directory.parent_path();
  return checkpoint_name_from(named.filename().string()).has_value() ||
         Storage().exists(directory / kIndexName);
}

std::string file_count(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " file" : " files");
}

void list_one(const Path& path) {
  Storage disk;
  const std::string head = path.filename().string() + "  " + disk.time_of(path / kIndexName) + "  ";
  try {
    const CheckpointReader reader(disk, path);
    // Sizes only: `ls` is quick, and `verify` reads the contents.
    const auto problems = reader.check_files();
    print_result(head + (problems.empty() ? std::to_string(reader.size_bytes()) + " bytes in " +
                                                file_count(reader.index().files.size())
                                          : "damaged: " + problems.front()));
  } catch (const std::exception& error) {
    print_result(head + "damaged: " + error.what());
  }
}

int list(const Path& directory) {
  for (const Path& path : checkpoints_at(directory)) list_one(path);
  Storage disk;
  std::error_code ignored;
  // A directory that cannot be listed was reported above.
  for (const std::string& name : disk.names_in(directory, ignored)) {
    if (partial_name_from(name)) {
      print_result(name + "  " + disk.time_of(directory / name) +
                   "  being written, or left by a writer that was killed");
    }
  }
  return kDone;
}

std::vector<std::string> problems_of(const Path& path) {
  Storage disk;
  try {
    return CheckpointReader(disk, path).verify();
  } catch (const std::exception& error) {
    return {error.what()};
  }
}

int verify(const Path& directory) {
  const std::vector<Path> paths = checkpoints_at(directory);
  if (paths.empty()) throw Failure(kBadData, "no checkpoint in " + directory.string());
  int exit_code = kDone;
  for (const Path& path : paths) {
    const auto problems = problems_of(path);
    for (const std::string& problem : problems) print_result(problem);
    print_result(path.string() + ": " + (problems.empty() ? "whole" : "damaged"));
    if (!problems.empty()) exit_code = kBadData;
  }
  return exit_code;
}

struct Statistics {
  double min = 0;
  double max = 0;
  double mean = 0;
  double norm = 0;  // the root of the sum of squares
};

// Non-finite values make mean and norm non-finite, too; min and max ignore NaN.
Statistics statistics_of(std::span<const float> values) {
  Statistics result{.min = INFINITY, .max = -INFINITY};
  double sum = 0;
  double squares = 0;
  for (const double value : values) {
    result.min = std::fmin(result.min, value);
    result.max = std::fmax(result.max, value);
    sum += value;
    squares += value * value;
  }
  result.mean = sum / static_cast<double>(values.size());
  result.norm = std::sqrt(squares);
  return result;
}

void print_configuration(const std::string& config_json) {
  using Json = nlohmann::json;
  const Json config = data::parse_json(config_json);
  // Of a user's program: an object with the list of its variables.
  const auto model = config.find("model");
  const bool is_program = model != config.end() && model->is_object() &&
                          model->contains("variables") && model->at("variables").is_array();
  print_result("configuration");
  for (const auto& [key, value] : config.items()) {
    // The variables are listed below, as tensors.
    if (is_program && key == "model") {
      const std::size_t count = model->at("variables").size();
      print_result(
          fmt::format("  {:<24} program of {} variable{}", key, count, count == 1 ? "" : "s"));
      continue;
    }
    // Facts about examples are those of built-in data.
    if (is_program && (key == "examples" || !concerns_program(key))) {
      continue;
    }
    // The file may come from another user, so neither keys nor values may control the terminal.
    const std::string text = data::json_text(value, {.only_ascii = true});
    print_result(fmt::format("  {:<24} {}", net::one_line(key), text));
  }
}

void print_tensors(const CheckpointIndex& index, const TrainingState& state) {
  print_result(
      fmt::format("{:<34} {:>13} {:>13} {:>13} {:>13}", "tensors", "min", "max", "mean", "norm"));
  for (std::size_t tensor = 0; tensor <= state.optimizer.size(); ++tensor) {
    const auto& values = tensor == 0 ? state.parameters : state.optimizer[tensor - 1].values;
    const std::string suffix = tensor == 0 ? "" : "/" + state.optimizer[tensor - 1].name;
    for (const math::Variable& variable : index.layout.variables()) {
      const Statistics found = statistics_of(values.span().subspan(variable.offset, variable.size));
      const std::string name = variable.name + suffix + " " + math::shape_text(variable.shape);
      print_result(fmt::format("  {:<32} {:13.6g} {:13.6g} {:13.6g} {:13.6g}", name, found.min,
                               found.max, found.mean, found.norm));
    }
  }
}

int show(const Path& directory) {
  Storage disk;
  // Newest first, up to the first one that can be read.
  for (const Path& path : checkpoints_at(directory)) {
    try {
      const CheckpointReader reader(disk, path);
      const TrainingState state = reader.read();
      print_result("checkpoint  " + path.string());
      print_result("step        " + std::to_string(state.step));
      print_result("written     " + disk.time_of(path / kIndexName));
      print_result("size        " + std::to_string(reader.size_bytes()) + " bytes in " +
                   file_count(reader.index().files.size()));
      print_configuration(reader.index().config_json);
      print_tensors(reader.index(), state);
      return kDone;
    } catch (const DamagedCheckpoint& damaged) {
      log_warning(damaged.what());
    } catch (const std::system_error& error) {
      log_warning(error.what());
    }
  }
  throw Failure(kBadData, "no whole checkpoint in " + directory.string());
}

}  // namespace

std::optional<CheckpointAction> checkpoint_action_from_name(std::string_view name) noexcept {
  if (name == "ls") return CheckpointAction::kList;
  if (name == "verify") return CheckpointAction::kVerify;
  if (name == "show") return CheckpointAction::kShow;
  return std::nullopt;
}

std::vector<std::filesystem::path> checkpoints_at(const std::filesystem::path& directory) {
  Storage disk;
  if (!disk.is_directory(directory)) {
    throw Failure(kUsage, net::quoted(directory.string()) + " is not a directory");
  }
  if (is_one_checkpoint(directory)) return {directory};
  std::vector<Path> paths;
  for (const CheckpointName& name : checkpoints_in(disk, directory)) {
    paths.push_back(directory / to_string(name));
  }
  return paths;
}

int run_checkpoint_command(const CheckpointCommand& command) {
  switch (command.action) {
    case CheckpointAction::kList:
      return list(command.directory);
    case CheckpointAction::kVerify:
      return verify(command.directory);
    case CheckpointAction::kShow:
      return show(command.directory);
  }
  return kUsage;
}

}  // namespace disttf::roles
