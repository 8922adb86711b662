#include "model/predict/predict_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <memory>
#include <span>
#include <system_error>
#include <utility>

#include "data/file.h"
#include "data/own/row_source.h"
#include "math/evaluation.h"
#include "model/model_files.h"
#include "model/predict/answer_text.h"
#include "model/predict/example_reader.h"
#include "net/waiting/interrupt.h"
#include "net/wire/text.h"
#include "run/outcome.h"
#include "run/process/log.h"
#include "run/process/resource_limits.h"
#include "run/process/stop_signal.h"
#include "run/result_text.h"
#include "text/shown_text.h"

namespace disttf::roles {
namespace {

using Path = std::filesystem::path;

// Rows per forward pass: enough to keep every thread busy, few enough for the first answers to come
// at once.
constexpr std::size_t kRowsAtOnce = 256;

std::vector<std::uint8_t> read_standard_input() {
  constexpr std::size_t kPiece = std::size_t{1} << 16U;
  std::vector<std::uint8_t> bytes;
  for (;;) {
    const std::size_t size = bytes.size();
    bytes.resize(size + kPiece);
    const ssize_t count = ::read(STDIN_FILENO, bytes.data() + size, kPiece);
    if (count < 0 && errno != EINTR) {
      throw std::system_error(errno, std::generic_category(), "cannot read standard input");
    }
    // After EINTR nothing was read, and the loop tries again.
    bytes.resize(size + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (count == 0) {
      return bytes;
    }
    if (bytes.size() > kMostExampleBytes) {
      throw Failure(kBadData, "standard input: more than " + std::to_string(kMostExampleBytes) +
                                  " bytes; give a file");
    }
  }
}

// An image of a folder, and its class if the folder has a class's name.
struct ImageFile {
  Path path;
  std::optional<std::size_t> label;
};

bool is_image_name(const Path& path) {
  std::string ending = path.extension().string();
  // Without the locale: file names are bytes.
  std::ranges::transform(ending, ending.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  return ending == ".png" || ending == ".jpg" || ending == ".jpeg";
}

// The images in a folder and in its subfolders with names of classes, sorted by name.
std::vector<ImageFile> images_in(const Path& folder, const TrainedModel& model) {
  std::vector<ImageFile> files;
  const auto add = [&files](const Path& from, std::optional<std::size_t> label) {
    for (const auto& entry : std::filesystem::directory_iterator(from)) {
      if (entry.is_regular_file() && is_image_name(entry.path())) {
        files.push_back({.path = entry.path(), .label = label});
      }
    }
  };
  add(folder, std::nullopt);
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const auto label = class_called(model, entry.path().filename().string());
    // A model of numbers has no classes, so a folder's name means nothing to it.
    if (entry.is_directory() && label && !model.tells_numbers()) {
      add(entry.path(), label);
    }
  }
  if (files.empty()) {
    throw Failure(
        kUsage,
        net::quoted(folder.string()) +
            " contains no .png, .jpg or .jpeg file, and no folder of them with a class's name");
  }
  // A directory has no order of its own, and the answers must not depend on it.
  std::ranges::sort(files, {}, &ImageFile::path);
  return files;
}

// Runs the model, prints its answers, and counts the right ones.
class Asking {
 public:
  Asking(const TrainedModel& model, const PredictOptions& options, const StopSignal& stop)
      : model_(model),
        options_(options),
        stop_(stop),
        predictor_(predictor_with_memory(model, options.threads)),
        outputs_(kRowsAtOnce * predictor_->outputs()) {
    counts_.classes = model.tells_numbers() ? 0 : model.config.model.classes;
    // [label, judged class].
    counts_.confusion.resize(counts_.classes * counts_.classes);
  }

  // As settle_range() in roles/serve/core; logs one warning for all files of a call.
  void settle_range(Examples& examples, const std::string& name) {
    if (model_.is_of_numbers() || examples.rows(predictor_->inputs()) == 0) {
      return;
    }
    // An empty `pixels` means numbers: an example has one or the other.
    const bool are_files = !examples.pixels.empty();
    const FoundRange found = are_files ? range_of(std::span<const std::uint8_t>(examples.pixels))
                                       : range_of(std::span<const float>(examples.numbers));
    const float most = are_files ? static_cast<float>(std::ranges::max(examples.pixels))
                                 : std::ranges::max(examples.numbers);
    const RangeDecision decision = decide_range(options_.input_range, found, most, are_files);
    // One warning is enough: the files of a call usually come from the same source.
    if (!decision.warning.empty() && !std::exchange(has_warned_, true)) {
      log_warning(name + ": " + std::string(decision.warning));
    }
    if (decision.is_scaled) {
      if (are_files) {
        examples.numbers.assign(examples.pixels.begin(), examples.pixels.end());
        examples.pixels.clear();
      }
      scale_to_bytes(examples.numbers);
    }
  }

  // Predicts all examples; evaluates those with labels.
  void ask(const Examples& examples, const std::string& name) {
    const std::size_t inputs = predictor_->inputs();
    const std::size_t rows = examples.rows(inputs);
    for (std::size_t begin = 0; begin < rows; begin += kRowsAtOnce) {
      // Between batches, so that Ctrl-C ends a long run soon.
      stop_.throw_if_stopped();
      const std::size_t count = std::min(kRowsAtOnce, rows - begin);
      const std::span<float> outputs = std::span(outputs_).first(count * predictor_->outputs());
      if (!examples.pixels.empty()) {
        predictor_->predict(std::span(examples.pixels).subspan(begin * inputs, count * inputs),
                            outputs);
      } else {
        predictor_->predict_numbers(
            std::span(examples.numbers).subspan(begin * inputs, count * inputs), outputs);
      }
      for (std::size_t i = 0; i < count; ++i) {
        tell(examples, name, begin + i,
             outputs.subspan(i * predictor_->outputs(), predictor_->outputs()));
      }
    }
  }

  void sum_up() {
    if (counts_.rows == 0) {
      return;
    }
    // Only rows with a label or a target count, so the errors are means over them.
    const auto rows = static_cast<double>(counts_.rows);
    counts_.squared_error /= rows;
    counts_.absolute_error /= rows;
    if (options_.json) {
      print_result(model_.tells_numbers()
                       ? fmt::format(R"({{"rows":{},"absolute_error":{},)"
                                     R"("squared_error":{}}})",
                                     counts_.rows, counts_.absolute_error, counts_.squared_error)
                       : fmt::format(R"({{"rows":{},"correct":{},"accuracy":{}}})", counts_.rows,
                                     counts_.correct, counts_.accuracy()));
      return;
    }
    if (!model_.tells_numbers()) {
      std::vector<std::string> names;
      for (std::size_t i = 0; i < counts_.classes; ++i) {
        names.push_back(model_.class_name(i));
      }
      const std::vector<std::string_view> views(names.begin(), names.end());
      for (const std::string& line : class_table(counts_, views)) {
        print_result(line);
      }
    }
    print_result(result_line(model_.config.dataset, counts_));
  }

  [[nodiscard]] std::size_t asked() const noexcept { return asked_; }

 private:
  static std::unique_ptr<math::Predictor> predictor_with_memory(const TrainedModel& model,
                                                                std::size_t threads) {
    require_memory(predictor_bytes(model, kRowsAtOnce), "this process",
                   "the outputs of all layers of the model");
    return predictor_of(model, kRowsAtOnce, threads);
  }

  void tell(const Examples& examples, const std::string& name, std::size_t row,
            std::span<const float> outputs) {
    AskedExample asked{.name = name};
    // A file that is one example needs no number of its row.
    if (!examples.is_single) {
      asked.row = row + 1;
    }
    if (row < examples.labels.size()) {
      asked.label = examples.labels[row];
    }
    if (row < examples.targets.size()) {
      asked.target = static_cast<double>(examples.targets[row]);
    }
    count(asked, outputs);
    print_result(options_.json ? answer_json(model_, asked, outputs, options_.top)
                               : answer_text(model_, asked, outputs, options_.top));
    ++asked_;
  }

  void count(const AskedExample& asked, std::span<const float> outputs) {
    if (asked.target) {
      const double error = static_cast<double>(outputs.front()) - *asked.target;
      counts_.squared_error += error * error;
      counts_.absolute_error += std::abs(error);
      ++counts_.rows;
    }
    if (asked.label) {
      const std::size_t judged = math::judged_class(outputs);
      counts_.correct += judged == *asked.label ? 1U : 0U;
      // A non-finite output has no class: it counts as wrong, but not in the matrix.
      if (judged < counts_.classes) {
        ++counts_.confusion[*asked.label * counts_.classes + judged];
      }
      ++counts_.rows;
    }
  }

  const TrainedModel& model_;
  const PredictOptions& options_;
  const StopSignal& stop_;
  std::unique_ptr<math::Predictor> predictor_;
  std::vector<float> outputs_;
  math::Evaluation counts_;  // of examples with known labels
  std::size_t asked_ = 0;
  bool has_warned_ = false;
};

Examples examples_of(const data::Dataset& dataset, const TrainedModel& model) {
  const math::ModelSpec& spec = model.config.model;
  const math::Shape shape{.height = dataset.shape.height,
                          .width = dataset.shape.width,
                          .channels = dataset.shape.channels};
  if (shape != spec.input || dataset.train.numbers.empty() == spec.numbers) {
    throw Failure(kUsage, "the examples of " + dataset.name + " are " + math::to_string(shape) +
                              (dataset.train.numbers.empty() ? " bytes" : " numbers") +
                              "; the model takes " + math::to_string(spec.input) +
                              (spec.numbers ? " numbers" : " bytes"));
  }
  // A data set of numbers has 0 classes; its model has one output.
  if (std::max<std::size_t>(dataset.classes, 1) != spec.classes) {
    throw Failure(kUsage, "the examples of " + dataset.name + " have " +
                              std::to_string(dataset.classes) + " classes; the model has " +
                              std::to_string(spec.classes) + " classes");
  }
  const data::Split& test = dataset.test;
  return {.pixels = {test.images.begin(), test.images.end()},
          .numbers = {test.numbers.begin(), test.numbers.end()},
          .labels = {test.labels.begin(), test.labels.end()},
          .targets = {test.targets.begin(), test.targets.end()}};
}

void ask_folder(Asking& asking, const Path& folder, const TrainedModel& model) {
  for (const ImageFile& file : images_in(folder, model)) {
    Examples examples =
        read_examples(data::read_file(file.path, kMostExampleBytes), file.path.string(), model);
    // The folder's name is the label of its images.
    if (file.label) {
      examples.labels.assign(examples.rows(model.config.model.input.size()), *file.label);
    }
    // Per file: one dark picture must not decide about the others.
    asking.settle_range(examples, file.path.string());
    asking.ask(examples, file.path.string());
  }
}

void ask_input(Asking& asking, const std::string& input, const PredictOptions& options,
               const TrainedModel& model) {
  if (input != "-" && std::filesystem::is_directory(input)) {
    ask_folder(asking, input, model);
    return;
  }
  const std::string name = input == "-" ? "standard input" : input;
  Examples examples = read_examples(
      input == "-" ? read_standard_input() : data::read_file(input, kMostExampleBytes), name,
      model);
  if (!options.labels.empty()) {
    examples.labels = read_labels(data::read_file(options.labels, kMostExampleBytes),
                                  options.labels.string(), model);
    const std::size_t rows = examples.rows(model.config.model.input.size());
    if (examples.labels.size() != rows) {
      throw Failure(kBadData, options.labels.string() + ": it has " +
                                  std::to_string(examples.labels.size()) + " labels, " + name +
                                  " has " + std::to_string(rows) + " examples");
    }
  }
  asking.settle_range(examples, name);
  asking.ask(examples, name);
}

}  // namespace

int run_predict(const PredictOptions& options) {
  const StopSignal stop;
  const auto begin = std::chrono::steady_clock::now();
  // Before the examples, whose readers need the model's shape and class names.
  const TrainedModel model = read_model(options.model);
  require_layers(model.config, "predict");
  log_info(fmt::format("The model is {} of {}, step {}, weights {:.8}",
                       math::describe(model.config.model), model.config.dataset, model.step,
                       model.weights_sha256));
  Asking asking(model, options, stop);
  try {
    if (options.data) {
      const data::Dataset dataset = open_dataset(*options.data, stop);
      asking.ask(examples_of(dataset, model), "the test part of " + dataset.name);
    }
    for (const std::string& input : options.inputs) {
      ask_input(asking, input, options, model);
    }
  } catch (const data::UnusableData& error) {
    throw Failure(kBadData, error.what());
  } catch (const std::system_error& error) {
    throw Failure(kBadData, shown_text(error.what()));  // the message contains file names
  }
  asking.sum_up();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  log_info(fmt::format("{} example{} in {:.2f} s", asking.asked(), asking.asked() == 1 ? "" : "s",
                       seconds.count()));
  return kDone;
}

}  // namespace disttf::roles
