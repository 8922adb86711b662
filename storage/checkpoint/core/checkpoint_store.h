// Checkpoints: the state of a run in a directory, so that a run can go on from it. For the content,
// byte by byte, see docs/checkpoint_format.md.
//
// A checkpoint is a directory of its own, "checkpoint-00000500", with one safetensors file per
// writer and an index. It is written under a temporary name, and renamed once it is complete and on
// the disk. So no reader ever finds half of one, not even after a power cut. Every byte is covered
// by a SHA-256; if one does not match, the checkpoint is damaged, and the previous one is used.
//
// If a step is saved again (after a rollback), a directory "checkpoint-00000500-2" is written
// before the old one is removed: one of them always exists.
//
// The store accesses the disk only through its data::FileSystem, and the order of its operations
// provides the guarantee: a save that has returned is found after a power cut at any time.
//
// Callable from any thread, except save() and commit_shards(): one at a time for an object, and for
// a directory. Readers may come at any time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/file_system.h"
#include "math/optimizer.h"
#include "math/parameter_layout.h"
#include "run/training_state.h"

namespace disttf::roles {

struct CheckpointName;  // checkpoint_reader.h

// Identifies a save: `attempt` distinguishes it from other attempts at the same step, of this
// process or another. The process that starts a save draws it at random.
struct SaveId {
  std::uint64_t step = 0;
  std::uint64_t attempt = 0;
};

// One ps's shard of the state. All members are borrowed.
struct ShardView {
  struct Tensor {
    std::string_view name;          // e.g. adam's "m"
    std::span<const float> values;  // range.size()
  };
  math::Range range;
  std::span<const float> parameters;  // range.size()
  std::vector<Tensor> optimizer;      // in the order of math::Optimizer::state()
};

// A file that a ps has written, as it reports it to the chief.
struct ShardFile {
  std::string name;  // within the checkpoint's directory
  math::Range range;
  std::vector<std::string> optimizer;  // names of the optimizer's tensors
  std::uint64_t size_bytes = 0;
  std::string header_sha256;        // of the bytes before the tensors, 64 hex digits
  std::vector<std::string> sha256;  // of each tensor, in file order
};

// Returns one JSON object, below 64 KiB for every model that a run may have.
[[nodiscard]] std::string to_json(const ShardFile& file);
// Reads it back. Throws std::invalid_argument with a sentence, because the bytes come from a peer.
[[nodiscard]] ShardFile shard_file_from_json(std::string_view json);

// A checkpoint that was read; all checksums matched.
struct LoadedCheckpoint {
  std::filesystem::path path;
  TrainingState state;
  std::string config_json;  // as saved, without spaces between its parts
};

// A checkpoint that was saved.
struct SavedCheckpoint {
  std::string name;              // of its directory
  std::uint64_t size_bytes = 0;  // of all files but the index
  // Of the parameters, as weights_hash(); empty if the ps have written them.
  std::string weights_sha256 = {};
};

class CheckpointStore {
 public:
  // Receives a sentence, e.g. for the log.
  using Warn = std::function<void(const std::string&)>;

  // Called by a save before its checkpoint gets its name. If it throws, there is no checkpoint, and
  // the save throws the same.
  using Permit = std::function<void()>;

  // `path` need not exist: the first save creates it. `files` must outlive the object.
  CheckpointStore(data::FileSystem& files, std::filesystem::path path, Permit permit = {})
      : files_(&files), path_(std::move(path)), permit_(std::move(permit)) {}

  // Functions that write throw std::runtime_error (std::system_error for a disk error) with a
  // sentence that names a path; the run can go on after a warning. The checkpoints from before are
  // then still there, and what the failed call had begun is removed. (If the disk fails to keep the
  // new name, the very last step, the old and the new one both exist.)
  //
  // `config_json`: the configuration as the chief published it, one JSON object. `keep`: of the
  // complete checkpoints up to this step the newest `keep` stay, and the others are removed; 0: all
  // stay. The one just written and newer ones always stay.

  // Saves the whole state, by one process.
  SavedCheckpoint save(std::uint64_t attempt, const TrainingState& state,
                       const math::ParameterLayout& layout, const std::string& config_json,
                       std::size_t keep);

  // Sharded: every ps writes its range of the vector, on file systems that show all of them the
  // same directory. For ps `ps` of `ps_count`. May be repeated with the same values.
  [[nodiscard]] ShardFile write_shard(const SaveId& id, std::size_t ps, std::size_t ps_count,
                                      const ShardView& shard,
                                      const math::ParameterLayout& layout) const;
  // ... then the chief commits, with the answers of all ps in their order. Refuses files that it
  // cannot see, and shards that together are not the whole vector.
  SavedCheckpoint commit_shards(const SaveId& id, std::span<const ShardFile> files,
                                const math::ParameterLayout& layout, const std::string& config_json,
                                std::size_t keep, const EarlyStopState& early_stop_state = {});
  // ... or discards, if a ps failed. Never throws: a later save removes what is left.
  void discard_shards(const SaveId& id) const noexcept;

  // Returns the newest complete checkpoint; nullopt if there is none, or no such directory. `warn`
  // is called for each newer one that is damaged. Throws Failure(kUsage) if the newest complete one
  // is of another model (it names the variable with both shapes) or of a later format;
  // std::system_error if the directory cannot be read, with
  // std::errc::resource_unavailable_try_again if the store is unavailable and a checkpoint that
  // could not be read may well be complete.
  [[nodiscard]] std::optional<LoadedCheckpoint> load_newest(const math::ParameterLayout& layout,
                                                            const Warn& warn) const;

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  // The files of a checkpoint, including the index, and their sizes.
  using Sizes = std::vector<std::pair<std::string, std::uint64_t>>;

  enum class Until : std::uint8_t { kItsNameIsDurable, kItIsDurable };
  // `weights_sha256`: nullptr if it is not wanted.
  ShardFile write_shard(const SaveId& id, std::size_t ps, std::size_t ps_count,
                        const ShardView& shard, const math::ParameterLayout& layout, Until until,
                        std::string* weights_sha256) const;
  void remove_old(const CheckpointName& saved, std::uint64_t attempt, std::size_t keep);
  bool looks_whole(const CheckpointName& name);

  data::FileSystem* files_;
  std::filesystem::path path_;
  Permit permit_;
  // The files of checkpoints found to be complete, by directory name, so that no save has to read
  // their indexes again.
  std::map<std::string, Sizes> whole_;
};

// Removes the partial directories that killed writers have left in `directory`: those of steps up
// to `step`, which are not saved any more, and others in which nothing was written for ten minutes.
// `now`: by the clock of the directory's file system (data::FileSystem::now()), which has dated its
// files. This machine's own clock may differ by hours, and would remove the files of a writer on
// another machine. May throw std::system_error.
void remove_abandoned(data::FileSystem& files, const std::filesystem::path& directory,
                      std::uint64_t step, std::filesystem::file_time_type now);

// For code that keeps checkpoints in a directory of its own.

// Gives the complete checkpoint in `partial`, a directory in `directory` with durable content, its
// name: the first free revision of its step. Throws std::system_error.
CheckpointName publish_checkpoint(data::FileSystem& files, const std::filesystem::path& partial,
                                  const std::filesystem::path& directory, std::uint64_t step);
// Renames the checkpoint first to a name that readers ignore, so that none finds half of it.
// `attempt`: of the save that removes it; revisions of one step get different names.
void remove_checkpoint(data::FileSystem& files, const std::filesystem::path& directory,
                       const CheckpointName& name, std::uint64_t attempt);

// Makes a state fit another optimizer than it was saved with: if its tensors are not those of
// `spec` in the same order, they are dropped, and the optimizer starts from zero. Returns a
// sentence about that; nullopt if they fit. Missing averages start from the parameters, and
// unwanted ones are dropped.
[[nodiscard]] std::optional<std::string> fit_optimizer(TrainingState& state,
                                                       const math::OptimizerSpec& spec);

}  // namespace disttf::roles
