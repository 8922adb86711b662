#include "run/monitor/shell/trace_file.h"

#include <unistd.h>

#include <cstdint>
#include <exception>
#include <span>
#include <string>

#include "data/file.h"
#include "storage/store/core/store_url.h"

namespace disttf::roles {
namespace {

std::filesystem::path path_for(const Trace& trace, const std::filesystem::path& train_dir) {
  const std::string step = std::to_string(trace.window().from) + ".json";
  // A timeline is for viewers, which open local files, so no store gets it.
  if (train_dir.empty() || is_store_url(train_dir)) {
    return std::filesystem::temp_directory_path() /
           ("disttf-trace-" + std::to_string(getpid()) + "-" + step);
  }
  std::filesystem::create_directories(train_dir / "traces");
  return std::filesystem::absolute(train_dir / "traces" / ("trace-" + step));
}

}  // namespace

TraceRecord write_trace(const Trace& trace, const std::filesystem::path& train_dir) {
  try {
    const std::filesystem::path path = path_for(trace, train_dir);
    const std::string text = trace.json();
    data::write_file_atomically(
        path, std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
    return {.file = path.string(),
            .why_not = {},
            .from = trace.window().from,
            .steps = trace.window().count,
            .missing = trace.missing(),
            .clock_error_seconds = trace.clock_error_seconds()};
  } catch (const std::exception& error) {
    // The run goes on: a timeline is an aid only.
    return {.file = {}, .why_not = error.what()};
  }
}

}  // namespace disttf::roles
