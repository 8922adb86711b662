#include <CLI/CLI.hpp>
#include <algorithm>
#include <stdexcept>
#include <utility>

#include "main/commands/registry.h"
#include "main/flags/data.h"
#include "main/flags/flag_group.h"
#include "main/version.h"
#include "math/denormals.h"
#include "model/export/export_command.h"
#include "run/process/machine.h"
#include "storage/store/shell/storage.h"

namespace disttf {
namespace {

constexpr const char* kExportGroup = "Export";

class ExportCommand : public WordCommand {
 public:
  void add_options(CLI::App& app) override {
    FlagGroup add(app, kExportGroup);
    app.add_option("MODEL")->description(
        "The --train_dir of a run, whose newest complete checkpoint is used, one checkpoint, or an "
        "export in format disttf");
    add.choice("--format", format_, "NAME",
               {roles::kExportFormats.begin(), roles::kExportFormats.end()},
               "`disttf`, a directory for predict and serve; `onnx`; `saved_model` of "
               "TensorFlow; `safetensors`; `npz` of NumPy");
    add.text("--output", output_, "PATH",
             "output file, or directory of `disttf` and `saved_model` [`model.onnx` and the "
             "like, `model`, `saved_model/STEP`]");
    add.toggle("--overwrite", overwrite_, "replace an existing export of this format");
    data_.add_to(app, DataFlags::Takes::kOwn);
  }

  std::unique_ptr<Action> action(const ParsedLine& line) override {
    const auto run = [](const roles::ExportOptions& options) {
      math::flush_denormals();  // before there is a second thread
      return roles::run_export(options);
    };
    return run_with(options(data_.options(line.environment)), run);
  }

 private:
  void take(std::vector<std::string>& arguments) override {
    if (!begins_with_word(arguments)) {
      throw std::invalid_argument(
          "export: the model is missing; for example export TRAIN_DIR --format onnx "
          "(see disttf export --help)");
    }
    model_ = take_first(arguments);
  }

  // `data`: the data set that --dataset or --data names, if any. Throws std::invalid_argument if
  // the format is missing.
  [[nodiscard]] roles::ExportOptions options(roles::DataOptions data) const {
    const auto found = std::ranges::find(roles::kExportFormats, format_);
    if (found == roles::kExportFormats.end()) {
      throw std::invalid_argument(
          "--format: missing; one of disttf, onnx, saved_model, safetensors, npz");
    }
    roles::check_place_to_write("--output", output_);
    roles::ExportOptions options{
        .model = model_,
        // kExportFormats has the order of the enumeration.
        .format = static_cast<roles::ExportFormat>(found - roles::kExportFormats.begin()),
        .output = output_,
        .overwrite = overwrite_,
        .data = std::nullopt,
        .threads = roles::processors(),
        .version = std::string(kVersion)};
    if (data.own || data.dataset != nullptr) {
      options.data = std::move(data);
    }
    return options;
  }

  std::string model_;
  std::string format_;
  std::string output_;  // empty: the usual one
  bool overwrite_ = false;
  DataFlags data_;
};

}  // namespace

CommandRow export_command() {
  return {
      .name = "export",
      .description =
          "Write a trained model for other programs: ONNX, SavedModel, safetensors, NumPy",
      .words = "MODEL",
      .about = "Omits what only training needs, such as the optimizer's tensors and dropout.",
      .examples = {{"disttf export run --format onnx", "Writes model.onnx."}},
      .files = {kCheckpointsFile, kInputDataFile},
      .reads = {Reads::kDownloads, Reads::kStores},
      .see_also = {"import", "predict", "serve"},
      .make = make_command<ExportCommand>,
  };
}

}  // namespace disttf
