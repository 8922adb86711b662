// `disttf export`: a trained model for other programs, and for disttf where no run is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "roles/download/dataset_source.h"

namespace disttf::roles {

enum class ExportFormat : std::uint8_t { kDisttf, kOnnx, kSavedModel, kSafetensors, kNpz };
// By ExportFormat: the values of --format.
inline constexpr std::array<std::string_view, 5> kExportFormats = {"disttf", "onnx", "saved_model",
                                                                   "safetensors", "npz"};

struct ExportOptions {
  std::filesystem::path model;  // as read_model() has it
  ExportFormat format = ExportFormat::kDisttf;
  std::filesystem::path output;     // empty: "model.onnx" and the like, in the working directory
  bool overwrite = false;           // an export of this format that is there
  std::optional<DataOptions> data;  // whose test part the accuracy is of that goes along
  std::size_t threads = 1;          // that find it out
  std::string version;              // of disttf
};

// kDone. Throws Failure: as read_model() and open_dataset() do; kUsage where the output is there
// already, or the format cannot hold the model; std::system_error where it cannot be written.
[[nodiscard]] int run_export(const ExportOptions& options);

}  // namespace disttf::roles
