#include "main/predict_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <stdexcept>
#include <utility>

#include "main/flag_values.h"
#include "main/input_range_flag.h"
#include "math/model_spec.h"
#include "net/wire/text.h"
#include "roles/process/machine.h"

namespace disttf {
namespace {

constexpr const char* kPredictGroup = "Predict";
constexpr std::size_t kMostPredictThreads = 256;

}  // namespace

void add_predict_flags(CLI::App& app, Flags& flags) {
  // For the help; the words are taken off the command line before the flags are read.
  app.add_option("MODEL")->description(
      "The --train_dir of a run, whose newest complete checkpoint is used, or one checkpoint");
  app.add_option("INPUT")->description(
      "Files of examples (PNG, JPEG, IDX, NPY, CSV, also gzipped), or folders of images; - is "
      "standard input");
  app.add_option("--top", flags.predict_top, "number of classes to print, most likely first")
      ->type_name("N")
      ->transform(whole_number(1, math::kMaxClasses))
      ->capture_default_str()
      ->group(kPredictGroup);
  app.add_option("--labels", flags.predict_labels,
                 "IDX file with the labels of a single INPUT [as the input has them]")
      ->type_name("FILE")
      ->group(kPredictGroup);
  app.add_option("--threads", flags.predict_threads, "compute threads [all usable CPUs]")
      ->type_name("N")
      ->transform(whole_number(1, kMostPredictThreads))
      ->group(kPredictGroup);
  add_input_range_flag(app, flags.input_range, kPredictGroup);
  app.add_flag("--json", flags.json, "print a line of JSON per example")
      ->transform(boolean())
      ->group(kPredictGroup);
}

std::vector<std::string> take_predict_words(std::vector<std::string>& arguments) {
  const auto end = std::ranges::find_if(arguments, [](const std::string& word) {
    // A lone - is standard input.
    return word.empty() || (word.starts_with("-") && word != "-");
  });
  std::vector<std::string> words(arguments.begin(), end);
  arguments.erase(arguments.begin(), end);
  if (words.empty()) {
    throw std::invalid_argument(
        "predict: the model is missing; for example predict TRAIN_DIR five.png --top 3 "
        "(see disttf predict --help)");
  }
  return words;
}

roles::PredictOptions predict_options(const std::vector<std::string>& words, const Flags& flags,
                                      roles::DataOptions data) {
  roles::PredictOptions options{.model = words.front(),
                                .inputs = {words.begin() + 1, words.end()},
                                .data = std::nullopt,
                                .labels = flags.predict_labels,
                                .top = flags.predict_top,
                                .threads = flags.predict_threads,
                                .json = flags.json,
                                .input_range = input_range_from(flags.input_range)};
  if (options.threads == 0) {
    options.threads = roles::processors();
  }
  // Exactly one source of examples.
  const bool names_data = data.own || data.dataset != nullptr;
  if (names_data == !options.inputs.empty()) {
    throw std::invalid_argument(
        names_data ? "predict: " + net::quoted(options.inputs.front()) +
                         " is an input, but --dataset or --data is given, too; give one of them"
                   : std::string("predict: the examples are missing; give files after the model, "
                                 "or --dataset or --data, whose test part is used"));
  }
  if (!options.labels.empty() && options.inputs.size() != 1) {
    throw std::invalid_argument("--labels: needs exactly one input, but there are " +
                                std::to_string(options.inputs.size()));
  }
  if (names_data) {
    options.data = std::move(data);
  }
  return options;
}

}  // namespace disttf
