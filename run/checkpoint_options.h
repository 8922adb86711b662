// What is saved of a run, where, and how often.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>

namespace disttf::roles {

struct CheckpointOptions {
  std::filesystem::path train_dir;     // empty: snapshots stay in memory
  std::uint64_t save_steps = 0;        // global steps between snapshots; 0: by time only
  std::chrono::seconds save_secs{10};  // time between snapshots; 0: by steps only
  std::size_t max_to_keep = 5;         // checkpoints; 0: all
  bool sharded = false;                // each ps writes its own range
};

}  // namespace disttf::roles
