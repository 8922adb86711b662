#include "main/import_command.h"

#include <CLI/CLI.hpp>
#include <stdexcept>
#include <utility>

#include "main/flag_values.h"
#include "main/model_command.h"
#include "math/model_spec.h"
#include "roles/store/shell/storage.h"

namespace disttf {
namespace {

constexpr const char* kImportGroup = "Import";

}  // namespace

void add_import_flags(CLI::App& app, Flags& flags) {
  // For the help; the word is taken off the command line before the flags are read.
  app.add_option("FILE")->description("ONNX, safetensors or NumPy's .npz");
  app.add_option("--train_dir", flags.run.checkpoints.train_dir,
                 "directory for the checkpoint that a run continues from")
      ->type_name("DIR")
      ->group(kImportGroup);
  app.add_option("--input", flags.model_input,
                 "shape of an example: height, width, channels [as the file has it]")
      ->type_name("HxWxC")
      ->group(kImportGroup);
  app.add_option("--input_layout", flags.input_layout,
                 "layout of an ONNX file's input: `nchw` (channels first) or `nhwc` (channels "
                 "last, as in Keras) [as the file says]")
      ->type_name("ORDER")
      ->check(one_of({"nchw", "nhwc"}))
      ->group(kImportGroup);
  app.add_option("--classes", flags.model_classes, "number of classes [as the file has it]")
      ->type_name("N")
      ->transform(whole_number(1, math::kMaxClasses))
      ->group(kImportGroup);
}

std::string take_import_word(std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.front().empty() || arguments.front().starts_with("-")) {
    throw std::invalid_argument(
        "import: the file is missing; for example import model.onnx "
        "--train_dir run (see disttf import --help)");
  }
  std::string word = std::move(arguments.front());
  arguments.erase(arguments.begin());
  return word;
}

roles::ImportOptions import_options(const std::string& file, const CLI::App& app,
                                    const Flags& flags) {
  if (flags.run.checkpoints.train_dir.empty()) {
    throw std::invalid_argument("--train_dir: missing; the directory for the checkpoint");
  }
  roles::check_place_to_write("--train_dir", flags.run.checkpoints.train_dir);
  roles::ImportOptions options{
      .file = file, .train_dir = flags.run.checkpoints.train_dir, .wishes = {}};
  options.wishes.config = flags.run.run_config(1, 1);
  options.wishes.names_model = flags.run.training.settings.has("model");
  // By count, not by value: the flags' variables hold defaults of `model show`, which must not
  // override the file.
  if (app.count("--input") > 0) {
    options.wishes.input = shape_from_text(flags.model_input);
  }
  if (app.count("--input_layout") > 0) {
    options.wishes.layout = flags.input_layout == "nchw" ? roles::ImageLayout::kChannelsFirst
                                                         : roles::ImageLayout::kChannelsLast;
  }
  if (app.count("--classes") > 0) {
    options.wishes.classes = flags.model_classes;
  }
  return options;
}

}  // namespace disttf
