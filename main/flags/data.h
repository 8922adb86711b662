// The data set and its source.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "main/environment.h"
#include "main/own_data_flags.h"
#include "storage/download/dataset_source.h"

namespace disttf {

struct DataFlags {
  // Which data a command takes: a named data set, also a user's own, or it may fetch the data
  // alone.
  enum class Takes : std::uint8_t { kNamed, kOwn, kDownloadOnly };

  std::string dataset = "auto";
  OwnDataFlags own;
  std::string data_dir = "./input_data";
  std::vector<std::string> data_url;
  std::string ca_file;
  std::uint64_t download_timeout_s = 600;
  bool download_only = false;

  void add_to(CLI::App& app, Takes takes);

  // Which data set, from which source, through which proxy. Throws std::invalid_argument if both
  // --data and --dataset are given.
  [[nodiscard]] roles::DataOptions options(const Environment& environment) const;
};

}  // namespace disttf
