// --data, the path of a user's own data, and the flags that say how to read it.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/own/own_data.h"

namespace disttf {

struct OwnDataFlags {
  std::string path;  // empty: a named data set
  std::string label_column;
  std::string label_type = "class";
  std::vector<std::string> ignored_columns;
  std::uint64_t skipped_lines = 0;
  std::string hold_out = "0.1,0.1";
};

// Adds the flags that say how to read the data; with `has_path` also --data.
void add_own_data_flags(CLI::App& app, OwnDataFlags& flags, const std::string& group,
                        bool has_path);

// nullopt without a path. Throws std::invalid_argument with one sentence if another of the flags is
// given without it.
[[nodiscard]] std::optional<data::OwnDataOptions> own_data_options(const OwnDataFlags& flags);

}  // namespace disttf
