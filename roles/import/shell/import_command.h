// `disttf import`: a checkpoint of somebody else's model, from which a run goes on.
#pragma once

#include <filesystem>

#include "roles/import/core/import_model.h"

namespace disttf::roles {

struct ImportOptions {
  std::filesystem::path file;       // ONNX, safetensors or .npz
  std::filesystem::path train_dir;  // in which there is no checkpoint yet
  ImportWishes wishes;
};

// kDone. The checkpoint is of step 0; beside it lies `model.toml` where the file has layers of its
// own. Throws Failure: kUsage where the directory has a checkpoint or the words make no sense,
// kBadData where the file is not what it should be.
[[nodiscard]] int run_import(const ImportOptions& options);

}  // namespace disttf::roles
