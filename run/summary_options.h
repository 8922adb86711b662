// What is written for TensorBoard, where, and how often.
#pragma once

#include <cstdint>
#include <filesystem>

namespace disttf::roles {

struct SummaryOptions {
  std::filesystem::path directory;  // its folders `chief` and `eval` receive the files; empty: none
  std::uint64_t every = 100;        // global steps between scalars; 0: none
  std::uint64_t histogram_every = 0;  // between histograms; 0: at evaluations only
};

}  // namespace disttf::roles
