#include <CLI/CLI.hpp>
#include <stdexcept>
#include <utility>

#include "main/commands/registry.h"
#include "main/flags/flag_group.h"
#include "main/flags/model_input.h"
#include "main/flags/training.h"
#include "math/model_spec.h"
#include "model/import/import_command.h"
#include "storage/store/shell/storage.h"

namespace disttf {
namespace {

constexpr const char* kImportGroup = "Import";

class ImportCommand : public WordCommand {
 public:
  void add_options(CLI::App& app) override {
    FlagGroup add(app, kImportGroup);
    app.add_option("FILE")->description("ONNX, safetensors or NumPy's .npz");
    add.text("--train_dir", train_dir_, "DIR",
             "directory for the checkpoint that a run continues from");
    add.text("--input", input_, "HxWxC",
             "shape of an example: height, width, channels [as the file has it]");
    add.choice("--input_layout", layout_, "ORDER", {"nchw", "nhwc"},
               "layout of an ONNX file's input: `nchw` (channels first) or `nhwc` (channels "
               "last, as in Keras) [as the file says]");
    add.number("--classes", classes_, "N", 1, math::kMaxClasses,
               "number of classes [as the file has it]");
    training_.add_model(app);
  }

  std::unique_ptr<Action> action(const ParsedLine& /*line*/) override {
    if (train_dir_.empty()) {
      throw std::invalid_argument("--train_dir: missing; the directory for the checkpoint");
    }
    roles::check_place_to_write("--train_dir", train_dir_);
    roles::ImportOptions options{.file = file_, .train_dir = train_dir_, .wishes = {}};
    options.wishes.config = training_.run_config(1, 1, /*has_own_data=*/false);
    options.wishes.names_model = training_.settings.has("model");
    if (input_) {
      options.wishes.input = shape_from_text(*input_);
    }
    if (!layout_.empty()) {
      options.wishes.layout = layout_ == "nchw" ? roles::ImageLayout::kChannelsFirst
                                                : roles::ImageLayout::kChannelsLast;
    }
    options.wishes.classes = classes_;
    return run_with(std::move(options), roles::run_import);
  }

 private:
  void take(std::vector<std::string>& arguments) override {
    if (!begins_with_word(arguments)) {
      throw std::invalid_argument(
          "import: the file is missing; for example import model.onnx "
          "--train_dir run (see disttf import --help)");
    }
    file_ = take_first(arguments);
  }

  std::string file_;
  std::string train_dir_;
  std::optional<std::string> input_;  // nullopt, empty: as the file has it
  std::string layout_;
  std::optional<std::size_t> classes_;
  TrainingFlags training_;
};

}  // namespace

CommandRow import_command() {
  return {
      .name = "import",
      .description = "Start a run from a foreign or an exported model",
      .words = "FILE",
      .about = "Writes a checkpoint, from which a run with the same --train_dir continues.",
      .examples = {{"disttf import model.onnx --train_dir run",
                    "Then disttf launch --train_dir run."}},
      .files = {kCheckpointsFile, kRecipeFile},
      .see_also = {"export", "launch"},
      .make = make_command<ImportCommand>,
  };
}

}  // namespace disttf
