// The checkpoints in a directory, and reading one of them. Nothing found there is trusted: every
// byte is compared with its checksum.
//
// Files are read, not mapped, so that a failing disk is an error and not a signal. Callable from
// any thread; objects passed as `files` must outlive their receiver.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "data/file_system.h"
#include "run/training_state.h"
#include "storage/checkpoint/core/checkpoint_index.h"

namespace disttf::roles {

// If a step is saved again, each complete save is a revision: "checkpoint-00000500" is the first,
// "checkpoint-00000500-2" the second. The highest counts.
struct CheckpointName {
  std::uint64_t step = 0;
  std::uint64_t revision = 1;
  friend auto operator<=>(const CheckpointName&, const CheckpointName&) = default;
};
[[nodiscard]] std::string to_string(const CheckpointName& name);
// Returns nullopt if it is not the name of a checkpoint: exactly the results of to_string() are.
[[nodiscard]] std::optional<CheckpointName> checkpoint_name_from(std::string_view text);

// The name while the checkpoint is being written. partial_name_from() returns nullopt for other
// names.
[[nodiscard]] std::string partial_name(const SaveId& id);
[[nodiscard]] std::optional<SaveId> partial_name_from(std::string_view text);

// Returns the checkpoints in `directory`, newest first, without checking whether they are complete.
// Empty if the directory does not exist; throws std::system_error if it cannot be read.
[[nodiscard]] std::vector<CheckpointName> checkpoints_in(data::FileSystem& files,
                                                         const std::filesystem::path& directory);

// Returns whether the error says that a checkpoint's store is unavailable: nothing is known then,
// so the checkpoint does not count as damaged. A disk never reports that about a file. Functions
// that read throw it as std::system_error.
[[nodiscard]] bool is_away(const std::error_code& error) noexcept;

class CheckpointReader {
 public:
  // Reads the index of the checkpoint at `path`. Throws like parse_index(), and std::system_error
  // if the index cannot be read.
  CheckpointReader(data::FileSystem& files, std::filesystem::path path);

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] const CheckpointIndex& index() const noexcept { return index_; }
  [[nodiscard]] std::uint64_t size_bytes() const noexcept;  // of all files but the index

  // Returns a sentence for every file that is missing or has another size. Reads no tensor.
  [[nodiscard]] std::vector<std::string> check_files() const;
  // Reads everything. Returns a sentence for every wrong file and tensor.
  [[nodiscard]] std::vector<std::string> verify() const;
  // Reads everything. Throws DamagedCheckpoint for the first error.
  [[nodiscard]] TrainingState read() const;

 private:
  // `state`: nullptr, or the destination of the tensors, with memory for all of them.
  void read_file(const ShardFile& file, TrainingState* state,
                 std::vector<std::string>& problems) const;

  data::FileSystem& files_;
  std::filesystem::path path_;
  CheckpointIndex index_;
};

}  // namespace disttf::roles
