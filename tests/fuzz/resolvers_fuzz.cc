// find_cluster: any environment (lines NAME=value) and any --task_hosts (the first line) give a
// valid cluster, "train on this machine", or one sentence of one line.
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "net/resolvers/resolvers.h"
#include "tests/fuzz/input.h"

namespace {

std::string take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  std::string line(text.substr(0, end));
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  disttf::net::ClusterFlags flags;
  flags.task_hosts = take_line(text);
  if (!flags.task_hosts.empty()) {
    flags.ps = 1;
    flags.workers = 3;
  }
  disttf::net::Environment environment;
  while (!text.empty()) {
    const std::string line = take_line(text);
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    environment[line.substr(0, equals)] = line.substr(equals + 1);
  }
  try {
    const auto resolution = disttf::net::find_cluster(flags, environment);
    if (resolution.found) {
      disttf::net::validate(resolution.found->cluster, resolution.found->task);
    }
  } catch (const std::invalid_argument& error) {
    disttf::fuzz::require_sentence(error.what(), "", 1000);
  }
  return 0;
}
