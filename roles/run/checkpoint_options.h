// What is kept of a run, where, and how often.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>

namespace disttf::roles {

struct CheckpointOptions {
  std::filesystem::path train_dir;     // empty: cuts stay in memory
  std::uint64_t save_steps = 0;        // a cut every so many global steps; 0: by time alone
  std::chrono::seconds save_secs{10};  // a cut every so often; 0: by steps alone
  std::size_t max_to_keep = 5;         // checkpoints; 0: all
  bool sharded = false;                // each ps writes its own range
};

}  // namespace disttf::roles
