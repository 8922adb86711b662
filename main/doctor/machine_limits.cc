#include "main/doctor/machine_limits.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>

#include <cerrno>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "run/process/control_group.h"
#include "run/process/machine.h"

namespace disttf::roles {
namespace {

using Grade = Finding::Grade;

// A parameter server needs some itself and some for each of its tasks: enough for hundreds.
constexpr rlim_t kManyDescriptors = 1024;

constexpr double kMebibyte = 1 << 20U;

}  // namespace

Finding check_descriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return {"descriptors", Grade::kLacking, std::generic_category().message(errno)};
  }
  const std::string text =
      fmt::format("{} files and connections may be open (ulimit -n)", limit.rlim_cur);
  return {"descriptors", limit.rlim_cur < kManyDescriptors ? Grade::kLacking : Grade::kGood, text};
}

Finding check_processors() {
  const std::size_t count = allowed_processors();
  // A container's share of time does not show in the processors that it may use.
  const auto limit = ControlGroup().processors();
  // A share that exceeds the processors limits nothing.
  if (limit && *limit < static_cast<double>(count)) {
    return {"processors", Grade::kGood,
            fmt::format("{}, limited to {:.2f} by a control group", count, *limit)};
  }
  return {"processors", Grade::kGood, fmt::format("{}", count)};
}

Finding check_memory() {
  struct sysinfo machine {};
  if (sysinfo(&machine) != 0) {
    return {"memory", Grade::kLacking, std::generic_category().message(errno)};
  }
  const double total = static_cast<double>(machine.totalram) * machine.mem_unit;
  const auto limit = ControlGroup().memory_bytes();
  std::string text = fmt::format("{:.0f} MiB", total / kMebibyte);
  // A limit above the machine's memory has no effect.
  if (limit && static_cast<double>(*limit) < total) {
    text += fmt::format(", limited to {:.0f} by a control group",
                        static_cast<double>(*limit) / kMebibyte);
  }
  rlimit data{};
  // RLIMIT_DATA is also what launch sets by --memory.
  if (getrlimit(RLIMIT_DATA, &data) == 0 && data.rlim_cur != RLIM_INFINITY) {
    text += fmt::format("; {:.0f} for each process (ulimit -d)",
                        static_cast<double>(data.rlim_cur) / kMebibyte);
  }
  return {"memory", Grade::kGood, text};
}

namespace {

std::string counted_gpus(std::size_t count) {
  return fmt::format("{} GPU{}", count, count == 1 ? "" : "s");
}

// "NVIDIA's driver 550.54.15, 2 GPUs (NVIDIA H200, NVIDIA H200)"
std::string drivers_text(const GpuList& found, const std::filesystem::path& root) {
  const std::string version = nvidia_driver_version(root);
  if (found.devices.empty()) {
    return version.empty() ? "no GPU" : fmt::format("NVIDIA's driver {}, but no GPU", version);
  }
  const bool is_nvidia = found.variable == kCudaVisible;
  std::string text = is_nvidia ? "NVIDIA's driver" : "AMD's driver";
  if (is_nvidia && !version.empty()) {
    text += " " + version;
  }
  text += ", " + counted_gpus(found.devices.size());
  std::string models;
  for (const std::string& model : is_nvidia ? nvidia_models(root) : std::vector<std::string>{}) {
    models += (models.empty() ? "" : ", ") + model;
  }
  return models.empty() ? text : text + " (" + models + ")";
}

}  // namespace

Finding check_gpus(const EnvironmentMap& environment, const std::filesystem::path& root) {
  const GpuList of_drivers = gpus_of_drivers(root);
  const std::string text = drivers_text(of_drivers, root);
  try {
    const GpuList usable = find_gpus(environment, root);
    if (usable.source == of_drivers.source) {
      return {"gpus", Grade::kGood, text};
    }
    return {
        "gpus", Grade::kGood,
        fmt::format("{}; {} lists {}", text, usable.source, counted_gpus(usable.devices.size()))};
  } catch (const std::invalid_argument& error) {
    return {"gpus", Grade::kLacking, text + "; " + error.what()};
  }
}

}  // namespace disttf::roles
