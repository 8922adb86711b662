// `disttf import`: converts another program's model into a checkpoint from which a run continues.
#pragma once

#include <filesystem>

#include "model/import/import_model.h"

namespace disttf::roles {

struct ImportOptions {
  std::filesystem::path file;       // ONNX, safetensors or .npz
  std::filesystem::path train_dir;  // must not contain a checkpoint
  ImportWishes wishes;
};

// Returns kDone. Writes a checkpoint of step 0, and `model.toml` beside it where the file contains
// layers. Throws Failure: kUsage where the directory has a checkpoint or the flags contradict the
// file, kBadData where the file is malformed.
[[nodiscard]] int run_import(const ImportOptions& options);

}  // namespace disttf::roles
