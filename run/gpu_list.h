// The GPUs that a process may use, as the variables of CUDA and ROCm list them.
//
// Values and pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace disttf::roles {

// The variables that list the GPUs which a process may use.
inline constexpr const char* kCudaVisible = "CUDA_VISIBLE_DEVICES";
inline constexpr const char* kRocrVisible = "ROCR_VISIBLE_DEVICES";
// Counts within those of ROCR_VISIBLE_DEVICES.
inline constexpr const char* kHipVisible = "HIP_VISIBLE_DEVICES";

struct GpuList {
  std::string variable = kCudaVisible;  // the one by which a process is given some of them
  // Entries of that variable: "0", "GPU-8932f937-d72c", "MIG-7cbd3aa8".
  std::vector<std::string> devices;
  std::string source;  // for messages: "CUDA_VISIBLE_DEVICES", "/proc/driver/nvidia/gpus"
};

// Returns the entries of such a variable's value as the libraries read it: the list ends at the
// first entry that is no device ("-1", "none"). Throws std::invalid_argument, which names
// `variable`, if a device occurs twice: CUDA then shows none at all.
[[nodiscard]] std::vector<std::string> read_visible_devices(std::string_view variable,
                                                            std::string_view value);

}  // namespace disttf::roles
