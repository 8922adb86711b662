#include "main/export_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <stdexcept>
#include <utility>

#include "main/flag_values.h"
#include "main/version.h"
#include "roles/process/machine.h"
#include "roles/store/shell/storage.h"

namespace disttf {
namespace {

constexpr const char* kExportGroup = "Export";

std::vector<std::string> format_names() {
  return {roles::kExportFormats.begin(), roles::kExportFormats.end()};
}

}  // namespace

void add_export_flags(CLI::App& app, Flags& flags) {
  // For the help; the word is taken off the command line before the flags are read.
  app.add_option("MODEL")->description(
      "The --train_dir of a run, whose newest complete checkpoint is used, one checkpoint, or an "
      "export in format disttf");
  app.add_option("--format", flags.export_format,
                 "`disttf`, a directory for predict and serve; `onnx`; `saved_model` of "
                 "TensorFlow; `safetensors`; `npz` of NumPy")
      ->type_name("NAME")
      ->check(one_of(format_names()))
      ->group(kExportGroup);
  app.add_option("--output", flags.export_output,
                 "output file, or directory of `disttf` and `saved_model` [`model.onnx` and the "
                 "like, `model`, `saved_model/STEP`]")
      ->type_name("PATH")
      ->group(kExportGroup);
  app.add_flag("--overwrite", flags.export_overwrite, "replace an existing export of this format")
      ->transform(boolean())
      ->group(kExportGroup);
}

std::string take_export_word(std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.front().empty() || arguments.front().starts_with("-")) {
    throw std::invalid_argument(
        "export: the model is missing; for example export TRAIN_DIR --format onnx "
        "(see disttf export --help)");
  }
  std::string word = std::move(arguments.front());
  arguments.erase(arguments.begin());
  return word;
}

roles::ExportOptions export_options(const std::string& model, const Flags& flags,
                                    roles::DataOptions data) {
  const auto found = std::ranges::find(roles::kExportFormats, flags.export_format);
  if (found == roles::kExportFormats.end()) {
    throw std::invalid_argument(
        "--format: missing; one of disttf, onnx, saved_model, safetensors, npz");
  }
  roles::check_place_to_write("--output", flags.export_output);
  roles::ExportOptions options{
      .model = model,
      // kExportFormats has the order of the enumeration.
      .format = static_cast<roles::ExportFormat>(found - roles::kExportFormats.begin()),
      .output = flags.export_output,
      .overwrite = flags.export_overwrite,
      .data = std::nullopt,
      .threads = roles::processors(),
      .version = std::string(kVersion)};
  if (data.own || data.dataset != nullptr) {
    options.data = std::move(data);
  }
  return options;
}

}  // namespace disttf
