#include "model/export/export_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "math/evaluation.h"
#include "model/export/answer_steps.h"
#include "model/export/model_facts.h"
#include "model/export/weights_files.h"
#include "model/model_files.h"
#include "net/wire/text.h"
#include "run/outcome.h"
#include "run/process/log.h"
#include "run/process/machine.h"
#include "run/process/stop_signal.h"
#include "storage/store/core/store_url.h"
#include "storage/store/shell/storage.h"

namespace disttf::roles {
namespace {

using Path = std::filesystem::path;

// A protobuf message is limited to 2^31 bytes; this leaves room for everything but the weights.
constexpr std::size_t kMostGraphBytes = std::size_t{2000} << 20U;

std::string_view name_of_format(ExportFormat format) {
  return kExportFormats.at(static_cast<std::size_t>(format));
}

// Accuracy on the examples of the test part.
double accuracy_on(const data::Dataset& dataset, const TrainedModel& model, std::size_t threads,
                   const StopSignal& stop) {
  constexpr std::size_t kRowsOfScore = 256;
  const data::Split& test = dataset.test;
  const auto predictor = predictor_of(model, kRowsOfScore, threads);
  const std::size_t inputs = predictor->inputs();
  std::vector<float> outputs(kRowsOfScore * predictor->outputs());
  std::size_t correct = 0;
  for (std::size_t begin = 0; begin < test.rows(); begin += kRowsOfScore) {
    stop.throw_if_stopped();
    const std::size_t rows = std::min(kRowsOfScore, test.rows() - begin);
    const std::span<float> answers = std::span(outputs).first(rows * predictor->outputs());
    if (model.is_of_numbers()) {
      predictor->predict_numbers(test.numbers.subspan(begin * inputs, rows * inputs), answers);
    } else {
      predictor->predict(test.images.subspan(begin * inputs, rows * inputs), answers);
    }
    for (std::size_t row = 0; row < rows; ++row) {
      const auto answer = answers.subspan(row * predictor->outputs(), predictor->outputs());
      correct += math::judged_class(answer) == test.labels[begin + row] ? 1U : 0U;
    }
  }
  return static_cast<double>(correct) / static_cast<double>(test.rows());
}

void find_accuracy(const ExportOptions& options, const StopSignal& stop, TrainedModel& model) {
  require_layers(model.config, "the accuracy on --data");
  const data::Dataset dataset = open_dataset(*options.data, stop);
  if (model.tells_numbers()) {
    throw Failure(kUsage, "--data: the model predicts numbers, which have no accuracy");
  }
  validate_for({.shape = {.height = dataset.shape.height,
                          .width = dataset.shape.width,
                          .channels = dataset.shape.channels},
                .numbers = !dataset.train.numbers.empty(),
                .labels_are_numbers = dataset.classes == 0,
                .classes = dataset.classes},
               model.config);
  model.accuracy = accuracy_on(dataset, model, options.threads, stop);
  log_info(fmt::format("Accuracy on the test part of {}: {:.4f}", dataset.name, *model.accuracy));
}

// The output path without --output.
Path usual_output(const ExportOptions& options, const TrainedModel& model) {
  switch (options.format) {
    case ExportFormat::kDisttf:
      return "model";
    case ExportFormat::kSavedModel:  // the layout that TensorFlow Serving expects
      return Path("saved_model") / std::to_string(model.step);
    case ExportFormat::kOnnx:
    case ExportFormat::kSafetensors:
    case ExportFormat::kNpz:
      break;
  }
  return "model." + std::string(name_of_format(options.format));
}

[[noreturn]] void refuse_output(const Path& output, const std::string& why) {
  throw Failure(kUsage, "--output: " + net::quoted(output.string()) + " " + why);
}

// `marker`: a file that every export of this format contains; empty: the output is one file.
// Returns whether an existing export is replaced.
bool check_output(const Path& output, const std::string& marker, bool overwrite) {
  Storage disk;
  // Asks the storage and not the disk: the output may be a store's URL.
  const auto inside = disk.entries(output);
  std::error_code not_a_file;
  static_cast<void>(disk.size_of(output, not_a_file));
  const bool is_link = !is_store_url(output) && std::filesystem::is_symlink(output);
  // Nothing exists there, or a dangling link, which a file replaces.
  if (!inside && not_a_file && (!is_link || marker.empty())) {
    return false;
  }
  // `--output /dev/stdout` and the like.
  if (marker.empty() && !inside && !is_store_url(output) &&
      !std::filesystem::is_regular_file(output)) {
    return false;  // a device or a FIFO is written to, not replaced
  }
  if (!overwrite) {
    refuse_output(output, "exists; --overwrite replaces it");
  }
  if (marker.empty()) {
    if (inside) {
      refuse_output(output, "is not a file, so it is not replaced");
    }
  } else if (!inside || is_link || (!inside->empty() && !disk.exists(output / marker))) {
    // Replaces only a directory that looks like an export of this format, and never through a link.
    refuse_output(output, "holds no " + marker +
                              ", so it is not an export of this format and is not replaced");
  }
  return true;
}

std::uint64_t write_file(const Path& output, const std::string& bytes, bool overwrite) {
  // Before the file is created: a refused export leaves nothing behind.
  static_cast<void>(check_output(output, "", overwrite));
  Storage disk;
  if (output.has_parent_path()) {
    data::create_directories(disk, output.parent_path());
  }
  const auto file = disk.create_output(output);
  file->write(data::bytes_in(bytes));
  file->sync();
  // The file gets its name only after it is on disk.
  file->take_name();
  return bytes.size();
}

std::uint64_t write_folder(const Path& output, const DirectoryFiles& contents, bool overwrite) {
  // The last file of each format is the one by which programs recognize it.
  const bool replaces = check_output(output, contents.back().first, overwrite);
  Storage disk;
  // A random mark: two exports to one place at once do not write into the same partial directory.
  write_directory(disk, output, contents, fmt::format("{:016x}", random_number()), replaces);
  std::uint64_t bytes = 0;
  for (const auto& [name, text] : contents) {
    bytes += text.size();
  }
  return bytes;
}

void require_a_graph_holds(const TrainedModel& model, ExportFormat format) {
  if (model.parameters.span().size_bytes() > kMostGraphBytes) {
    throw Failure(kUsage, fmt::format("--format: {} holds at most {} bytes of weights, and the "
                                      "model has {}; use disttf or safetensors",
                                      net::quoted(std::string(name_of_format(format))),
                                      kMostGraphBytes, model.parameters.span().size_bytes()));
  }
}

std::uint64_t write_model(const TrainedModel& model, const Path& output,
                          const ExportOptions& options) {
  const ModelFacts facts = facts_of(model);
  switch (options.format) {
    case ExportFormat::kDisttf:
      return write_folder(output, disttf_model(model), options.overwrite);
    case ExportFormat::kOnnx:
      // Before the graph is built, which copies all weights.
      require_a_graph_holds(model, options.format);
      return write_file(output, onnx_model(answer_steps_of(model), facts, options.version),
                        options.overwrite);
    case ExportFormat::kSavedModel:
      require_a_graph_holds(model, options.format);
      return write_folder(output,
                          {{"assets.extra/disttf.json", to_json(facts) + "\n"},
                           {"saved_model.pb", saved_model(answer_steps_of(model))}},
                          options.overwrite);
    case ExportFormat::kSafetensors:
      return write_file(output, safetensors_model(model, facts), options.overwrite);
    case ExportFormat::kNpz:
      return write_file(output, npz_model(model, facts), options.overwrite);
  }
  return 0;
}

}  // namespace

int run_export(const ExportOptions& options) {
  const StopSignal stop;
  TrainedModel model = read_model(options.model);
  if (options.format == ExportFormat::kOnnx || options.format == ExportFormat::kSavedModel) {
    require_layers(model.config, "--format " + std::string(name_of_format(options.format)));
  }
  // Before writing: the accuracy becomes part of the exported facts.
  if (options.data) {
    find_accuracy(options, stop, model);
  }
  Path output = options.output.empty() ? usual_output(options, model) : options.output;
  // Names beside the directory are built from its last part, which must not be empty.
  if (!output.has_filename()) {  // "DIR/"
    output = output.parent_path();
  }
  const std::uint64_t bytes = write_model(model, output, options);
  print_written(fmt::format("Exported {} of {}, step {}, weights {:.8}, to {} ({}, {} bytes)",
                            math::describe(model.config.model), model.config.dataset, model.step,
                            model.weights_sha256, net::one_line(output.string()),
                            name_of_format(options.format), bytes),
                output);
  return kDone;
}

}  // namespace disttf::roles
