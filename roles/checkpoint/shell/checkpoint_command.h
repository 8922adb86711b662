// `disttf checkpoint`: what lies in a directory of checkpoints, whether it is whole, what is in it.
// Results go to standard output, nothing is changed.
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
  // Of a run, with any number of checkpoints, or one checkpoint.
  std::filesystem::path directory;
};

// `directory` itself where it is a checkpoint; else those that lie in it, newest first. Throws
// Failure(kUsage) where it is no directory.
[[nodiscard]] std::vector<std::filesystem::path> checkpoints_at(
    const std::filesystem::path& directory);

// kDone, or of verify kBadData when any checkpoint is damaged. Throws Failure when the directory
// does not exist (kUsage), when there is nothing to verify, or nothing whole to show (kBadData).
[[nodiscard]] int run_checkpoint_command(const CheckpointCommand& command);

}  // namespace disttf::roles
