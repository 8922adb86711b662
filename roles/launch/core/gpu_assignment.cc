#include "roles/launch/core/gpu_assignment.h"

#include <stdexcept>

#include "net/wire/text.h"

namespace disttf::roles {
namespace {

std::string gpus_text(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " GPU" : " GPUs");
}

std::string there_are(const GpuList& list) {
  const std::size_t count = list.devices.size();
  return std::string(count == 1 ? "there is " : "there are ") + std::to_string(count) + " (" +
         list.source + ")";
}

}  // namespace

void check_gpus(const GpuOptions& options, std::size_t trainers) {
  const std::size_t each = options.per_worker;
  const std::size_t count = options.list.devices.size();
  if (each == 0 || each * trainers <= count) {
    return;
  }
  if (count == 0) {
    throw std::invalid_argument("--gpus_per_worker: " + std::to_string(each) +
                                " is not possible, because there are 0 GPUs (" +
                                options.list.source + "); leave it out to compute on CPUs");
  }
  if (!options.share) {
    throw std::invalid_argument(
        "--gpus_per_worker: " + std::to_string(trainers) +
        (trainers == 1 ? " trainer" : " trainers") + " with " + gpus_text(each) + " each need " +
        std::to_string(each * trainers) + ", but " + there_are(options.list) +
        "; start fewer workers, or give several of them the same GPU with --share_gpus");
  }
  // The libraries show nothing if a list names a device twice.
  if (each > count) {
    throw std::invalid_argument("--gpus_per_worker: the " + gpus_text(each) +
                                " of a worker must differ, but " + there_are(options.list) +
                                "; ask for fewer");
  }
}

std::vector<std::string> gpus_of(const GpuOptions& options, std::size_t trainer) {
  const std::vector<std::string>& all = options.list.devices;
  std::vector<std::string> own;
  for (std::size_t each = 0; each < options.per_worker; ++each) {
    // Starts over at the end of the list: only with --share_gpus, else check_gpus() refuses.
    own.push_back(all[(trainer * options.per_worker + each) % all.size()]);
  }
  return own;
}

std::vector<std::string> gpu_variables(const GpuOptions& options,
                                       std::optional<std::size_t> trainer) {
  if (options.per_worker == 0) {
    return {};
  }
  if (!trainer) {
    std::vector<std::string> variables = {std::string(kCudaVisible) + "="};
    if (options.list.variable != kCudaVisible) {
      // ROCr's, too: HIP takes an empty list for none given.
      variables.push_back(std::string(kHipVisible) + "=");
      variables.push_back(std::string(kRocrVisible) + "=");
    }
    return variables;
  }
  std::vector<std::string> variables = {options.list.variable + "=" +
                                        net::joined(gpus_of(options, *trainer), ",")};
  // CUDA's own order puts the fastest first; its numbers would differ from those of nvidia-smi.
  if (!options.has_device_order) {
    variables.emplace_back("CUDA_DEVICE_ORDER=PCI_BUS_ID");
  }
  // Without it cuBLAS may give other bits from run to run. It is read before the program's first
  // line runs.
  if (!options.has_cublas_workspace) {
    variables.emplace_back("CUBLAS_WORKSPACE_CONFIG=:4096:8");
  }
  return variables;
}

}  // namespace disttf::roles
