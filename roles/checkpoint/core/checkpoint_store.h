// Checkpoints: the state of a run in a directory, so that a run can go on from it. What lies there,
// byte for byte: docs/checkpoint_format.md.
//
// A checkpoint is a directory of its own, "checkpoint-00000500", with one safetensors file per
// writer and an index. It is written under a temporary name and renamed once it is whole and on
// the disk, so that no reader ever finds half of one, not even after a power cut. Every byte is
// covered by a SHA-256; what does not fit is damaged, and the checkpoint before is used.
//
// A step that is saved again (after a return to an older state) replaces the one that is there, by
// a directory "checkpoint-00000500-2" before the old one is removed: there is always one of them.
//
// The store touches no disk itself but through the data::FileSystem that it is given, and the order
// of its operations is the promise: a save that has returned is found after a power cut at any
// time.
//
// Callable from any thread, but for save() and commit_shards(): one at a time of an object, and of
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
#include "roles/run/training_state.h"

namespace disttf::roles {

struct CheckpointName;  // checkpoint_reader.h

// Which save it is: `attempt` tells it from other tries at the same step, of this process or
// another. Whoever starts it draws the number at random.
struct SaveId {
  std::uint64_t step = 0;
  std::uint64_t attempt = 0;
};

// What one ps has of the state. All are borrowed.
struct ShardView {
  struct Tensor {
    std::string_view name;          // e.g. adam's "m"
    std::span<const float> values;  // range.size()
  };
  math::Range range;
  std::span<const float> parameters;  // range.size()
  std::vector<Tensor> optimizer;      // in the order of math::Optimizer::state()
};

// A file that a ps has written, as it tells the chief.
struct ShardFile {
  std::string name;  // within the checkpoint's directory
  math::Range range;
  std::vector<std::string> optimizer;  // names of the optimizer's tensors
  std::uint64_t size_bytes = 0;
  std::string header_sha256;        // of the bytes before the tensors, 64 hex digits
  std::vector<std::string> sha256;  // of each tensor, in the order in which they lie in the file
};

// One JSON object, below 64 KiB for every model that a run may have.
[[nodiscard]] std::string to_json(const ShardFile& file);
// Reads it back. Throws std::invalid_argument with a sentence: the bytes come from a peer.
[[nodiscard]] ShardFile shard_file_from_json(std::string_view json);

// A checkpoint as it was read, all checksums right.
struct LoadedCheckpoint {
  std::filesystem::path path;
  TrainingState state;
  std::string config_json;  // as it was saved, without spaces between its parts
};

// A checkpoint as it was saved.
struct SavedCheckpoint {
  std::string name;              // of its directory
  std::uint64_t size_bytes = 0;  // of all files but the index
  // Of the parameters, as weights_hash(); empty where the ps have written them.
  std::string weights_sha256 = {};
};

class CheckpointStore {
 public:
  // Gets a sentence, e.g. for the log.
  using Warn = std::function<void(const std::string&)>;

  // `path` need not exist: the first save creates it. `files` must outlive the object.
  CheckpointStore(data::FileSystem& files, std::filesystem::path path)
      : files_(&files), path_(std::move(path)) {}

  // The functions that write throw std::runtime_error (std::system_error where the disk is to
  // blame) with a sentence that names a path: for a warning, the run can go on. What was there
  // before is there afterwards, and what they had begun is removed. (Where the disk fails to keep
  // the new name, the very last thing, old and new are both there.)
  //
  // `config_json`: the configuration as the chief published it, one JSON object.
  // `keep`: of the whole checkpoints up to this step the newest `keep` stay, the others are
  // removed; 0: all stay. The one just written and newer ones always stay.

  // The whole state, by one process.
  SavedCheckpoint save(std::uint64_t attempt, const TrainingState& state,
                       const math::ParameterLayout& layout, const std::string& config_json,
                       std::size_t keep);

  // Sharded: every ps writes its range of the vector, on file systems that show all of them the
  // same directory. Ps `ps` of `ps_count`. May be repeated with the same values.
  [[nodiscard]] ShardFile write_shard(const SaveId& id, std::size_t ps, std::size_t ps_count,
                                      const ShardView& shard,
                                      const math::ParameterLayout& layout) const;
  // ... then the chief, with the answers of all ps in their order. Refuses files that it does not
  // see, and shards that together are not the whole vector.
  SavedCheckpoint commit_shards(const SaveId& id, std::span<const ShardFile> files,
                                const math::ParameterLayout& layout, const std::string& config_json,
                                std::size_t keep, const EarlyEnd& early_end = {});
  // ... or, if a ps failed. Never throws: what stays is removed by a later save.
  void discard_shards(const SaveId& id) const noexcept;

  // The newest whole one; nullopt if there is none, or no such directory. `warn` is told of each
  // newer one that is damaged. Throws Failure(kUsage) when the newest whole one is of another
  // model, naming the variable with both shapes, or of a later format; std::system_error when the
  // directory itself cannot be read; with std::errc::resource_unavailable_try_again where the store
  // is away, and a checkpoint that could not be read may well be whole.
  [[nodiscard]] std::optional<LoadedCheckpoint> load_newest(const math::ParameterLayout& layout,
                                                            const Warn& warn) const;

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  // The files of a checkpoint, the index among them, and their sizes.
  using Sizes = std::vector<std::pair<std::string, std::uint64_t>>;

  enum class Until : std::uint8_t { kItsNameIsDurable, kItIsDurable };
  // `weights_sha256`: nullptr, it is not wanted.
  ShardFile write_shard(const SaveId& id, std::size_t ps, std::size_t ps_count,
                        const ShardView& shard, const math::ParameterLayout& layout, Until until,
                        std::string* weights_sha256) const;
  void remove_old(const CheckpointName& saved, std::uint64_t attempt, std::size_t keep);
  bool looks_whole(const CheckpointName& name);

  data::FileSystem* files_;
  std::filesystem::path path_;
  // Of those that were found to be whole, so that no save has to read the others' indexes again; by
  // the names of their directories.
  std::map<std::string, Sizes> whole_;
};

// Removes the partial directories that killed writers have left in `directory`: nobody saves a step
// any more once `step` is there, and others are abandoned when nothing was written there for ten
// minutes. `now`: by the clock of the directory's file system (data::FileSystem::now()), which has
// dated what lies there. This machine's own clock may be any hours from it, and would have a
// writer on another machine lose what it is writing. May throw std::system_error.
void remove_abandoned(data::FileSystem& files, const std::filesystem::path& directory,
                      std::uint64_t step, std::filesystem::file_time_type now);

// For whoever keeps checkpoints in a directory of its own.

// Gives the whole checkpoint in `partial`, a directory in `directory` whose contents are durable,
// its name: the first edition of its step that is free. Throws std::system_error.
CheckpointName publish_checkpoint(data::FileSystem& files, const std::filesystem::path& partial,
                                  const std::filesystem::path& directory, std::uint64_t step);
// Under a name that no reader looks at first, so that nobody finds half of it. `attempt`: of the
// save that removes it; editions of one step get different names.
void remove_checkpoint(data::FileSystem& files, const std::filesystem::path& directory,
                       const CheckpointName& name, std::uint64_t attempt);

// Makes a state fit another optimizer than it was saved with: tensors that `spec` does not have in
// the same order are dropped, so that it begins as a new one does. The sentence says so; nullopt:
// they fit. Averages that are missing begin with the parameters, those that nobody wants go.
[[nodiscard]] std::optional<std::string> fit_optimizer(TrainingState& state,
                                                       const math::OptimizerSpec& spec);

}  // namespace disttf::roles
