// The best checkpoint of a run, in a directory of its own below --train_dir, where the run that
// saves and prunes does not look: `DIR/best/checkpoint-00000500`. Its files are other names of the
// same files, so it takes no room of its own while the run keeps that checkpoint as well, and stays
// whole when the run removes it; where a file system knows no such names they are copies.
//
// Before a checkpoint is judged it is held, under a name that no reader looks at: what was found to
// be the best is then not gone. What is kept is always whole: after a power cut, or a process that
// was killed, it is the one before or the new one, and perhaps both.
//
// Not thread-safe: one process at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "data/file_system.h"
#include "roles/checkpoint/core/checkpoint_reader.h"

namespace disttf::roles {

inline constexpr std::string_view kBestDirectory = "best";

class BestCheckpoint {
 public:
  // `files` must outlive it.
  BestCheckpoint(data::FileSystem& files, std::filesystem::path train_dir);

  // Those that write throw std::system_error with a sentence that names a path.

  // What a process before this one has left half done goes.
  void clear();
  // More than one, where it was killed between keeping one and removing the other. Newest first.
  [[nodiscard]] std::vector<CheckpointName> kept() const;
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

  // Of the --train_dir; where it is held. nullopt: it is gone. `attempt`: another number each time.
  [[nodiscard]] std::optional<std::filesystem::path> hold(const CheckpointName& name,
                                                          std::uint64_t attempt);
  // The one that is held is the best from now on.
  std::filesystem::path keep();
  // It is not.
  void drop() noexcept;
  // Of those that are kept, this one is.
  void keep_only(const CheckpointName& name);

 private:
  [[nodiscard]] std::error_code take(const std::filesystem::path& from,
                                     const std::filesystem::path& to);
  void copy(const std::filesystem::path& from, const std::filesystem::path& to);

  data::FileSystem* files_;
  std::filesystem::path train_dir_;
  std::filesystem::path path_;  // DIR/best
  std::filesystem::path held_;  // empty: none is
  SaveId id_;                   // of that
};

}  // namespace disttf::roles
