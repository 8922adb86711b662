#include <CLI/CLI.hpp>
#include <algorithm>
#include <stdexcept>
#include <utility>

#include "main/commands/registry.h"
#include "main/flags/data.h"
#include "main/flags/flag_group.h"
#include "main/flags/model_input.h"
#include "math/denormals.h"
#include "math/model_spec.h"
#include "model/predict/predict_command.h"
#include "net/wire/text.h"
#include "run/process/machine.h"

namespace disttf {
namespace {

constexpr const char* kPredictGroup = "Predict";
constexpr std::size_t kMostPredictThreads = 256;

class PredictCommand : public WordCommand {
 public:
  void add_options(CLI::App& app) override {
    FlagGroup add(app, kPredictGroup);
    app.add_option("MODEL")->description(
        "The --train_dir of a run, whose newest complete checkpoint is used, or one checkpoint");
    app.add_option("INPUT")->description(
        "Files of examples (PNG, JPEG, IDX, NPY, CSV, also gzipped), or folders of images; - is "
        "standard input");
    add.number("--top", top_, "N", 1, math::kMaxClasses,
               "number of classes to print, most likely first");
    add.text("--labels", labels_, "FILE",
             "IDX file with the labels of a single INPUT [as the input has them]");
    add.number("--threads", threads_, "N", 1, kMostPredictThreads,
               "compute threads [all usable CPUs]");
    add_input_range_flag(app, input_range_, kPredictGroup);
    add.toggle("--json", as_json_, "print a line of JSON per example");
    data_.add_to(app, DataFlags::Takes::kOwn);
  }

  std::unique_ptr<Action> action(const ParsedLine& line) override {
    const auto run = [](const roles::PredictOptions& options) {
      math::flush_denormals();  // before there is a second thread
      return roles::run_predict(options);
    };
    return run_with(options(data_.options(line.environment)), run);
  }

 private:
  void take(std::vector<std::string>& arguments) override {
    const auto end = std::ranges::find_if(arguments, [](const std::string& word) {
      // A lone - is standard input.
      return word.empty() || (word.starts_with("-") && word != "-");
    });
    words_.assign(arguments.begin(), end);
    arguments.erase(arguments.begin(), end);
    if (words_.empty()) {
      throw std::invalid_argument(
          "predict: the model is missing; for example predict TRAIN_DIR five.png --top 3 "
          "(see disttf predict --help)");
    }
  }

  // `data`: the data set that --dataset or --data names, if any. Throws std::invalid_argument
  // unless the examples come from exactly one source.
  [[nodiscard]] roles::PredictOptions options(roles::DataOptions data) const {
    roles::PredictOptions options{.model = words_.front(),
                                  .inputs = {words_.begin() + 1, words_.end()},
                                  .data = std::nullopt,
                                  .labels = labels_,
                                  .top = top_,
                                  .threads = threads_.value_or(roles::processors()),
                                  .json = as_json_,
                                  .input_range = input_range_from(input_range_)};
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

  std::vector<std::string> words_;  // MODEL, then the inputs
  std::size_t top_ = 1;
  std::string labels_;                  // a file; empty: none
  std::optional<std::size_t> threads_;  // nullopt: roles::processors()
  std::string input_range_ = "byte";
  bool as_json_ = false;
  DataFlags data_;
};

}  // namespace

CommandRow predict_command() {
  return {
      .name = "predict",
      .description = "Predict images or rows of a table with a trained model",
      .words = "MODEL INPUT...",
      .about =
          "Prints a line for each example: the most likely classes with their probabilities, "
          "or a number.",
      .examples = {{"disttf predict run five.png", "Prints five.png: 5 (0.9987)."}},
      .files = {kCheckpointsFile, kInputDataFile},
      .reads = {Reads::kDownloads, Reads::kStores},
      .see_also = {"serve", "export"},
      .make = make_command<PredictCommand>,
  };
}

}  // namespace disttf
