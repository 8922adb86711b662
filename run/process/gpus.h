// The GPUs of this machine.
//
// A static file cannot load the libraries of their makers, so the list is that of a variable, else
// that of the kernel's drivers. Does not log; callable from any thread.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "run/gpu_list.h"

namespace disttf::roles {

using EnvironmentMap = std::map<std::string, std::string, std::less<>>;

// Returns the GPUs that this process may use: those of CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES or
// ROCR_VISIBLE_DEVICES if `environment` has it, else NVIDIA's in the order of their PCI addresses,
// else AMD's. `root`: where proc, dev and sys are. Throws as read_visible_devices() does; what
// cannot be read has no GPUs.
[[nodiscard]] GpuList find_gpus(const EnvironmentMap& environment,
                                const std::filesystem::path& root = "/");
// The same without variables: the devices of the drivers.
[[nodiscard]] GpuList gpus_of_drivers(const std::filesystem::path& root = "/");

// Returns the version of NVIDIA's driver, "550.54.15"; empty without one.
[[nodiscard]] std::string nvidia_driver_version(const std::filesystem::path& root = "/");
// Returns the models of NVIDIA's GPUs in the order above, "NVIDIA H200"; fewer than there are GPUs
// where the driver does not tell.
[[nodiscard]] std::vector<std::string> nvidia_models(const std::filesystem::path& root = "/");

}  // namespace disttf::roles
