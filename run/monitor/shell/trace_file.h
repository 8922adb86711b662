// The files of timelines: TRAIN_DIR/traces/trace-STEP.json, or without --train_dir
// disttf-trace-PID-STEP.json in the directory for temporary files.
#pragma once

#include <filesystem>

#include "run/monitor/core/record.h"
#include "run/monitor/core/trace.h"

namespace disttf::roles {

// Writes the file. The record has the path, or the error.
[[nodiscard]] TraceRecord write_trace(const Trace& trace, const std::filesystem::path& train_dir);

}  // namespace disttf::roles
