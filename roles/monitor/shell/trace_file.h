// Where timelines go: TRAIN_DIR/traces/trace-STEP.json, or where there is no --train_dir
// disttf-trace-PID-STEP.json in the directory for temporary files.
#pragma once

#include <filesystem>

#include "roles/monitor/core/record.h"
#include "roles/monitor/core/trace.h"

namespace disttf::roles {

// What has become of it. A file that cannot be written is said in the record.
[[nodiscard]] TraceRecord write_trace(const Trace& trace, const std::filesystem::path& train_dir);

}  // namespace disttf::roles
