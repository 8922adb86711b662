// `disttf checkpoint`: lists the checkpoints of a directory, verifies them, or shows their content.
// Results go to standard output; nothing is changed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

namespace disttf::roles {

enum class CheckpointAction : std::uint8_t { kList, kVerify, kShow };
[[nodiscard]] std::optional<CheckpointAction> checkpoint_action_from_name(
    std::string_view name) noexcept;  // "ls", "verify", "show"

struct CheckpointCommand {
  CheckpointAction action = CheckpointAction::kList;
  // A directory with any number of checkpoints, or one checkpoint.
  std::filesystem::path directory;
};

// Returns `directory` itself if it is a checkpoint, else the checkpoints in it, newest first.
// Throws Failure(kUsage) if it is not a directory.
[[nodiscard]] std::vector<std::filesystem::path> checkpoints_at(
    const std::filesystem::path& directory);

// Returns kDone, or for verify kBadData if any checkpoint is damaged. Throws Failure if the
// directory does not exist (kUsage), or if there is nothing to verify or nothing complete to show
// (kBadData).
[[nodiscard]] int run_checkpoint_command(const CheckpointCommand& command);

}  // namespace disttf::roles
