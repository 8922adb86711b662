// The spellings of flags: tutorials and orchestrators write them in several ways, CLI11 reads one.
//
//   --task-index=1     --task_index=1       hyphens for underscores
//   --sync_replicas True                    a flag's value as a word of its own
//   --sync_replicas=False                   Python's booleans
//
// Pure functions.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace disttf {

// "true" or "false" for true, 1, yes, on, false, 0, no, off in any letter case; else nullopt.
[[nodiscard]] std::optional<std::string> as_boolean(std::string_view word);

// `is_flag`: whether "--name" is a boolean flag (it takes no value word of its own in CLI11).
[[nodiscard]] std::vector<std::string> normalize_arguments(
    std::span<const std::string> arguments, const std::function<bool(std::string_view)>& is_flag);

}  // namespace disttf
