#include "run/process/gpus.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>

#include "net/wire/text.h"

namespace disttf::roles {
namespace {

using Path = std::filesystem::path;

constexpr const char* kNvidia = "proc/driver/nvidia";
constexpr const char* kAmd = "sys/class/kfd/kfd/topology/nodes";

// Sorted. An unreadable folder has no names.
std::vector<std::string> names_in_folder(const Path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

// The text after `name` of the first line that begins with it, without blanks around it; nullopt:
// no line does.
std::optional<std::string> line_after(const Path& path, std::string_view name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name)) {
      return std::string(net::trim(line.substr(name.size())));
    }
  }
  return std::nullopt;
}

std::optional<unsigned> number_from(std::string_view text) {
  unsigned number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end != text.data() ? std::optional(number) : std::nullopt;
}

// "nvidia0", and neither "nvidiactl" nor "nvidia-uvm".
bool is_nvidia_device(std::string_view name) {
  constexpr std::string_view kStart = "nvidia";
  return name.starts_with(kStart) && name.size() > kStart.size() &&
         std::ranges::all_of(name.substr(kStart.size()), net::is_digit);
}

// The information files of NVIDIA's GPUs, by PCI address: the order of
// CUDA_DEVICE_ORDER=PCI_BUS_ID. A container may see the files of all GPUs of the machine and the
// devices of some: those count.
std::vector<Path> nvidia_files(const Path& root) {
  const std::vector<std::string> in_dev = names_in_folder(root / "dev");
  // The driver makes the devices on first use, so there may be none yet.
  const bool has_devices = std::ranges::any_of(in_dev, is_nvidia_device);
  const Path folder = root / kNvidia / "gpus";
  std::vector<Path> files;
  for (const std::string& address : names_in_folder(folder)) {
    Path file = folder / address / "information";
    const auto minor = line_after(file, "Device Minor:");
    if (!has_devices || !minor || std::ranges::binary_search(in_dev, "nvidia" + *minor)) {
      files.push_back(std::move(file));
    }
  }
  return files;
}

std::vector<std::string> numbered(std::size_t count) {
  std::vector<std::string> numbers;
  for (std::size_t number = 0; number < count; ++number) {
    numbers.push_back(std::to_string(number));
  }
  return numbers;
}

// How many GPUs AMD's driver has. Its nodes include the processors, which have no SIMD units; those
// that a container may not use cannot be read, or have no device.
std::size_t amd_gpus(const Path& root) {
  std::error_code error;
  if (!std::filesystem::exists(root / "dev/kfd", error)) {
    return 0;
  }
  const auto is_gpu = [&root](const std::string& node) {
    const Path file = root / kAmd / node / "properties";
    const auto units = number_from(line_after(file, "simd_count").value_or(""));
    const auto minor = number_from(line_after(file, "drm_render_minor").value_or(""));
    std::error_code ignored;
    return units.value_or(0) != 0 &&
           (!minor || std::filesystem::exists(
                          root / "dev/dri" / ("renderD" + std::to_string(*minor)), ignored));
  };
  return static_cast<std::size_t>(std::ranges::count_if(names_in_folder(root / kAmd), is_gpu));
}

}  // namespace

GpuList gpus_of_drivers(const Path& root) {
  if (const std::size_t count = nvidia_files(root).size(); count != 0) {
    return {.devices = numbered(count), .source = "/proc/driver/nvidia/gpus"};
  }
  // Without /proc/driver, as in some sandboxes.
  const std::vector<std::string> in_dev = names_in_folder(root / "dev");
  if (const auto count = std::ranges::count_if(in_dev, is_nvidia_device); count != 0) {
    return {.devices = numbered(static_cast<std::size_t>(count)), .source = "/dev/nvidia*"};
  }
  if (const std::size_t count = amd_gpus(root); count != 0) {
    return {.variable = kRocrVisible, .devices = numbered(count), .source = "/sys/class/kfd"};
  }
  return {.devices = {}, .source = "no driver of NVIDIA or AMD has a device"};
}

GpuList find_gpus(const EnvironmentMap& environment, const Path& root) {
  // HIP's before ROCr's: it counts within the other one, so it is the shorter list.
  for (const char* variable : {kCudaVisible, kHipVisible, kRocrVisible}) {
    if (const auto found = environment.find(variable); found != environment.end()) {
      return {.variable = variable,
              .devices = read_visible_devices(variable, found->second),
              .source = variable};
    }
  }
  return gpus_of_drivers(root);
}

std::string nvidia_driver_version(const Path& root) {
  // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024"
  std::istringstream words(line_after(root / kNvidia / "version", "NVRM version:").value_or(""));
  for (std::string word; words >> word;) {
    if (net::is_digit(word.front()) && word.find('.') != std::string::npos) {
      return net::one_line(word);
    }
  }
  return {};
}

std::vector<std::string> nvidia_models(const Path& root) {
  std::vector<std::string> models;
  for (const Path& file : nvidia_files(root)) {
    if (const auto model = line_after(file, "Model:")) {
      models.push_back(net::one_line(*model));
    }
  }
  return models;
}

}  // namespace disttf::roles
