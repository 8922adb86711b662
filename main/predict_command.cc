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
      "The --train_dir of a run, whose newest whole checkpoint is taken, or one checkpoint");
  app.add_option("INPUT")->description(
      "Files of examples, each one of PNG, JPEG, IDX, NPY and CSV, also gzipped; folders of "
      "images; - is standard input");
  app.add_option("--top", flags.predict_top, "so many classes of each example, the likeliest first")
      ->type_name("N")
      ->transform(whole_number(1, math::kMaxClasses))
      ->capture_default_str()
      ->group(kPredictGroup);
  app.add_option("--labels", flags.predict_labels,
                 "an IDX file with the labels of the one INPUT [as the input has them]")
      ->type_name("FILE")
      ->group(kPredictGroup);
  app.add_option("--threads", flags.predict_threads, "that compute [the CPUs that it can use]")
      ->type_name("N")
      ->transform(whole_number(1, kMostPredictThreads))
      ->group(kPredictGroup);
  add_input_range_flag(app, flags.input_range, kPredictGroup);
  app.add_flag("--json", flags.json, "a line of JSON for each example")
      ->transform(boolean())
      ->group(kPredictGroup);
}

std::vector<std::string> take_predict_words(std::vector<std::string>& arguments) {
  const auto end = std::ranges::find_if(arguments, [](const std::string& word) {
    return word.empty() || (word.starts_with("-") && word != "-");
  });
  std::vector<std::string> words(arguments.begin(), end);
  arguments.erase(arguments.begin(), end);
  if (words.empty()) {
    throw std::invalid_argument(
        "predict: the model is missing; it comes before the flags, as in predict TRAIN_DIR "
        "five.png --top 3 (disttf predict --help tells more)");
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
  const bool names_data = data.own || data.dataset != nullptr;
  if (names_data == !options.inputs.empty()) {
    throw std::invalid_argument(
        names_data ? "predict: " + net::quoted(options.inputs.front()) +
                         " is an input, and --dataset or --data name others; give one of them"
                   : std::string("predict: the examples are missing; files behind the model, or "
                                 "--dataset or --data, whose test part is asked about"));
  }
  if (!options.labels.empty() && options.inputs.size() != 1) {
    throw std::invalid_argument("--labels: the labels of one input, but there are " +
                                std::to_string(options.inputs.size()));
  }
  if (names_data) {
    options.data = std::move(data);
  }
  return options;
}

}  // namespace disttf
