// --data, the user's own data, and how that is read.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/own/own_data.h"

namespace disttf {

struct OwnDataFlags {
  std::string path;  // empty: a data set that has a name
  std::string label_column;
  std::string label_type = "class";
  std::vector<std::string> ignored_columns;
  std::uint64_t skipped_lines = 0;
  std::string hold_out = "0.1,0.1";
};

// The flags that say how; with `has_path`, --data, too.
void add_own_data_flags(CLI::App& app, OwnDataFlags& flags, const std::string& group,
                        bool has_path);

// None without a path. Throws std::invalid_argument with one sentence where one of the others was
// given without it.
[[nodiscard]] std::optional<data::OwnDataOptions> own_data_options(const OwnDataFlags& flags);

}  // namespace disttf
