// Which trainer of a launch gets which GPUs.
//
// Trainer i gets the i-th `per_worker` of the list, so a restarted one gets its own again, and an
// added one those that no other has. Trainers are counted with a separate chief first. Values and
// pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "run/gpu_list.h"

namespace disttf::roles {

struct GpuOptions {
  std::size_t per_worker = 0;  // 0: none are assigned, and all tasks see what the launch sees
  bool share = false;          // a GPU may be given to several trainers
  GpuList list = {};
  // The variables CUDA_DEVICE_ORDER and CUBLAS_WORKSPACE_CONFIG of the launch: given, they stay.
  bool has_device_order = false;
  bool has_cublas_workspace = false;
};

// Throws std::invalid_argument, with both numbers and what to do, if there are too few GPUs for so
// many trainers.
void check_gpus(const GpuOptions& options, std::size_t trainers);

// Returns the GPUs of a trainer. REQUIRES: check_gpus() for more trainers than `trainer`.
[[nodiscard]] std::vector<std::string> gpus_of(const GpuOptions& options, std::size_t trainer);

// Returns variables of a task's environment, "NAME=value"; nullopt: it is no trainer and sees no
// GPU. Empty if none are assigned.
[[nodiscard]] std::vector<std::string> gpu_variables(const GpuOptions& options,
                                                     std::optional<std::size_t> trainer);

}  // namespace disttf::roles
