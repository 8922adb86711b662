// The checkpoints that lie in a directory, and reading one of them: nothing that is found there is
// trusted, every byte is compared with its checksum.
//
// Files are read, not mapped: a disk that fails then is an error instead of a signal. Callable
// from any thread; what is passed as `files` must outlive what it is passed to.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "data/file_system.h"
#include "roles/checkpoint/core/checkpoint_index.h"
#include "roles/run/training_state.h"

namespace disttf::roles {

// Of a step that was saved again, each whole save is an edition: "checkpoint-00000500" is the
// first, "checkpoint-00000500-2" the second. The highest counts.
struct CheckpointName {
  std::uint64_t step = 0;
  std::uint64_t edition = 1;
  friend auto operator<=>(const CheckpointName&, const CheckpointName&) = default;
};
[[nodiscard]] std::string to_string(const CheckpointName& name);
// nullopt: not the name of a checkpoint. Exactly what to_string() gives is one.
[[nodiscard]] std::optional<CheckpointName> checkpoint_name_from(std::string_view text);

// The name while it is being written. nullopt: no such name.
[[nodiscard]] std::string partial_name(const SaveId& id);
[[nodiscard]] std::optional<SaveId> partial_name_from(std::string_view text);

// The checkpoints in `directory`, newest first; whether they are whole is not looked at. Empty
// when there is no such directory; throws std::system_error when it cannot be read.
[[nodiscard]] std::vector<CheckpointName> checkpoints_in(data::FileSystem& files,
                                                         const std::filesystem::path& directory);

// Whether the store is away that a checkpoint lies in: nothing is known of it then, so it is not
// damaged. A disk never says that of a file. Functions that read throw it as std::system_error.
[[nodiscard]] bool is_away(const std::error_code& error) noexcept;

class CheckpointReader {
 public:
  // Reads the index of the checkpoint at `path`. Throws as parse_index() does, and
  // std::system_error when the index cannot be read.
  CheckpointReader(data::FileSystem& files, std::filesystem::path path);

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] const CheckpointIndex& index() const noexcept { return index_; }
  [[nodiscard]] std::uint64_t size_bytes() const noexcept;  // of all files but the index

  // A sentence for every file that is missing or has another size. Reads no tensor.
  [[nodiscard]] std::vector<std::string> check_files() const;
  // Reads everything; a sentence for every file and every tensor that is wrong.
  [[nodiscard]] std::vector<std::string> verify() const;
  // Reads everything. Throws DamagedCheckpoint for the first that is wrong.
  [[nodiscard]] TrainingState read() const;

 private:
  // `state`: nullptr, or where tensors go, with memory for all of them.
  void read_file(const ShardFile& file, TrainingState* state,
                 std::vector<std::string>& problems) const;

  data::FileSystem& files_;
  std::filesystem::path path_;
  CheckpointIndex index_;
};

}  // namespace disttf::roles
