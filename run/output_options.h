// What a run saves, and what it writes for TensorBoard: where, and how often.
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

// What is written for TensorBoard, where, and how often.
struct SummaryOptions {
  std::filesystem::path directory;  // its folders `chief` and `eval` receive the files; empty: none
  std::uint64_t every = 100;        // global steps between scalars; 0: none
  std::uint64_t histogram_every = 0;  // between histograms; 0: at evaluations only
};

}  // namespace disttf::roles
