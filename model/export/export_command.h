// `disttf export`: writes a trained model for other programs, or for disttf without its run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "storage/download/dataset_source.h"

namespace disttf::roles {

enum class ExportFormat : std::uint8_t { kDisttf, kOnnx, kSavedModel, kSafetensors, kNpz };
// Indexed by ExportFormat: the values of --format.
inline constexpr std::array<std::string_view, 5> kExportFormats = {"disttf", "onnx", "saved_model",
                                                                   "safetensors", "npz"};

struct ExportOptions {
  std::filesystem::path model;  // as for read_model()
  ExportFormat format = ExportFormat::kDisttf;
  std::filesystem::path output;     // empty: "model.onnx" etc. in the working directory
  bool overwrite = false;           // replace an existing export of this format
  std::optional<DataOptions> data;  // its test part gives the accuracy in the metadata
  std::size_t threads = 1;          // for computing the accuracy
  std::string version;              // of disttf
};

// Returns kDone. Throws Failure as read_model() and open_dataset() do, and with kUsage where the
// output exists or the format cannot hold the model; std::system_error where writing fails.
[[nodiscard]] int run_export(const ExportOptions& options);

}  // namespace disttf::roles
