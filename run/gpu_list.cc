#include "run/gpu_list.h"

#include <algorithm>
#include <stdexcept>

#include "net/wire/text.h"

namespace disttf::roles {
namespace {

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  const std::size_t first = text.find_first_not_of(kBlanks);
  return first == std::string_view::npos
             ? std::string_view()
             : text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

bool names_device(std::string_view entry) {
  return entry.starts_with("GPU-") || entry.starts_with("MIG-") ||
         (!entry.empty() && std::ranges::all_of(entry, net::is_digit));
}

}  // namespace

std::vector<std::string> read_visible_devices(std::string_view variable, std::string_view value) {
  std::vector<std::string> devices;
  while (!value.empty()) {
    const std::size_t comma = std::min(value.find(','), value.size());
    const std::string device(without_blanks(value.substr(0, comma)));
    value.remove_prefix(std::min(comma + 1, value.size()));
    if (!names_device(device)) {
      break;
    }
    if (std::ranges::find(devices, device) != devices.end()) {
      throw std::invalid_argument(std::string(variable) + ": names the GPU " + net::quoted(device) +
                                  " twice; once is allowed");
    }
    devices.push_back(device);
  }
  return devices;
}

}  // namespace disttf::roles
