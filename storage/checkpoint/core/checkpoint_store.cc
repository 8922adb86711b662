#include "storage/checkpoint/core/checkpoint_store.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <chrono>
#include <system_error>
#include <utility>

#include "data/checksums.h"
#include "data/safetensors.h"
#include "run/outcome.h"
#include "run/task.h"
#include "storage/checkpoint/core/checkpoint_index.h"
#include "storage/checkpoint/core/checkpoint_reader.h"

namespace disttf::roles {
namespace {

using Path = std::filesystem::path;

// A writer that has not written to its files for this long is not coming back. A live one pauses
// only while the disk is busy; if it is declared dead, it fails with a warning.
constexpr std::chrono::minutes kAbandonedAfter{10};
// How many names a save tries: each is lost to another writer that publishes the same step at the
// same time, and there are at most a few of these.
constexpr int kMostNames = 1000;

std::string file_name(std::size_t ps, std::size_t ps_count) {
  const auto five_digits = [](std::size_t value) {
    const std::string text = std::to_string(value);
    return std::string(text.size() < 5 ? 5 - text.size() : 0, '0') + text;
  };
  return "model-" + five_digits(ps + 1) + "-of-" + five_digits(ps_count) + ".safetensors";
}

std::vector<std::string> tensor_names(const ShardView& shard) {
  std::vector<std::string> names;
  for (const ShardView::Tensor& tensor : shard.optimizer) names.emplace_back(tensor.name);
  return names;
}

// Returns the shard's values of every piece.
std::vector<data::SafetensorsTensor> tensors_of(const ShardView& shard,
                                                std::span<const Piece> pieces) {
  std::vector<data::SafetensorsTensor> tensors;
  for (const Piece& piece : pieces) {
    const auto values =
        piece.tensor == 0 ? shard.parameters : shard.optimizer[piece.tensor - 1].values;
    assert(values.size() == shard.range.size());
    tensors.push_back(
        {.name = piece.name,
         .shape = piece.shape,
         .values = values.subspan(piece.range.begin - shard.range.begin, piece.range.size())});
  }
  return tensors;
}

struct Hashes {
  std::vector<std::string> tensors;
  std::string first;  // of the first few of them together
};

// (The first tensor of a model is usually most of its parameters: it is hashed once for both.)
Hashes hashes_of(std::span<const data::SafetensorsTensor> tensors, std::size_t first) {
  Hashes hashes;
  data::Sha256 together;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto bytes = std::as_bytes(tensors[i].values);
    if (i < first) together.update(bytes);
    hashes.tensors.push_back(i == 0 && first != 0 ? together.hex_so_far()
                                                  : data::sha256_hex(bytes));
  }
  hashes.first = together.hex();
  return hashes;
}

// Checks that the files reported by the ps are one checkpoint.
void check_shards(std::span<const ShardFile> files, const math::ParameterLayout& layout,
                  const Path& directory) {
  const auto refuse = [&directory](const ShardFile& file, const std::string& why) {
    throw std::runtime_error("cannot save " + directory.string() + ": " + why + " (" + file.name +
                             ")");
  };
  std::size_t end = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const ShardFile& file = files[i];
    if (file.name != file_name(i, files.size())) {
      refuse(file, "ps " + std::to_string(i) + " has written a file of another name");
    }
    if (file.range.begin != end || file.range.end > layout.size()) {
      refuse(file, "the ranges of the ps do not follow each other");
    }
    end = file.range.end;
    // Each ps reports what it has written. One of another configuration would make a checkpoint
    // that no run can read.
    if (file.optimizer != files.front().optimizer) {
      refuse(file, "the ps have different optimizers");
    }
    if (file.sha256.size() != pieces_of(layout, file.optimizer, file.range).size()) {
      refuse(file, "a ps has written other tensors than the model has");
    }
  }
  if (end != layout.size()) {
    throw std::runtime_error("cannot save " + directory.string() + ": " +
                             std::to_string(files.size()) + " files do not hold the whole model");
  }
}

// A ps with another disk under --train_dir has written its file, but not here.
void check_presence(data::FileSystem& disk, std::span<const ShardFile> files,
                    const Path& directory) {
  for (const ShardFile& file : files) {
    std::error_code error;
    const auto size = disk.size_of(directory / file.name, error);
    if (!error && size == file.size_bytes) continue;
    throw std::runtime_error("cannot save " + directory.string() + ": " + file.name +
                             " is not there as its ps has written it; sharded checkpoints need a "
                             "train_dir that all tasks share");
  }
}

// Removes files of writers that were killed and came back, from a directory that is about to become
// a checkpoint.
void remove_strays(data::FileSystem& disk, std::span<const ShardFile> files,
                   const Path& directory) {
  std::error_code ignored;
  for (const std::string& name : disk.names_in(directory, ignored)) {
    const auto is_it = [&name](const ShardFile& file) { return file.name == name; };
    if (name != kIndexName && std::ranges::none_of(files, is_it)) {
      data::remove_all(disk, directory / name);
    }
  }
}

// Creates a save's directory. Its name need not be durable, since it is renamed later; but without
// any checkpoint yet the directories above may not be durable, either.
void create_partial(data::FileSystem& disk, const Path& partial) {
  std::error_code error;
  const std::vector<std::string> names = disk.names_in(partial.parent_path(), error);
  const auto is_checkpoint = [](const std::string& name) {
    return checkpoint_name_from(name).has_value();
  };
  if (error || std::ranges::none_of(names, is_checkpoint)) {
    data::create_directories(disk, partial);
    return;
  }
  // An existing directory is no error: each ps of a save creates it, and the first one wins.
  disk.create_directory(partial, error);
  if (error) throw std::system_error(error, "cannot create " + partial.string());
}

std::vector<std::string> names_in(data::FileSystem& disk, const Path& directory) {
  std::error_code error;
  std::vector<std::string> names = disk.names_in(directory, error);
  if (error) throw std::system_error(error, "cannot read " + directory.string());
  return names;
}

// Returns when anything in it was last written.
std::filesystem::file_time_type last_write(data::FileSystem& disk, const Path& directory) {
  auto latest = disk.last_write(directory);
  for (const std::string& name : names_in(disk, directory)) {
    latest = std::max(latest, disk.last_write(directory / name));
  }
  return latest;
}

// Returns why a checkpoint with `saved` is of another model than `wanted`, if it is.
std::optional<std::string> difference(const math::ParameterLayout& saved,
                                      const math::ParameterLayout& wanted) {
  const auto theirs = saved.variables();
  const auto ours = wanted.variables();
  for (std::size_t i = 0; i < std::max(theirs.size(), ours.size()); ++i) {
    if (i >= theirs.size())
      return "it has no " + ours[i].name + " " + math::shape_text(ours[i].shape);
    if (i >= ours.size()) {
      return "this run has no " + theirs[i].name + " " + math::shape_text(theirs[i].shape);
    }
    if (theirs[i].name != ours[i].name || theirs[i].shape != ours[i].shape) {
      return "it has " + theirs[i].name + " " + math::shape_text(theirs[i].shape) + ", this run " +
             ours[i].name + " " + math::shape_text(ours[i].shape);
    }
  }
  return std::nullopt;
}

// Housekeeping, so no error is reported. Asking for the file system's time costs the disk a file.
void try_to_remove_abandoned(data::FileSystem& disk, const Path& directory,
                             std::uint64_t step) noexcept {
  try {
    const auto is_partial = [](const std::string& name) {
      return partial_name_from(name).has_value();
    };
    if (std::ranges::any_of(names_in(disk, directory), is_partial)) {
      remove_abandoned(disk, directory, step, disk.now(directory));
    }
  } catch (const std::exception&) {
    return;  // another save will try again
  }
}

}  // namespace

CheckpointName publish_checkpoint(data::FileSystem& disk, const Path& partial,
                                  const Path& directory, std::uint64_t step) {
  CheckpointName name{.step = step};
  for (const CheckpointName& each : checkpoints_in(disk, directory)) {
    // An existing checkpoint of the step is never overwritten.
    if (each.step == step) name.revision = std::max(name.revision, each.revision + 1);
  }
  std::error_code error;
  // Another writer may take the same revision at the same time: try the next one. The tries are
  // limited and not the revision, which grows with each save of the step over the life of a run.
  for (int tries = 0; tries < kMostNames; ++tries, ++name.revision) {
    error = disk.rename(partial, directory / to_string(name));
    if (!error) {
      // Only now the save is durable: without this a power cut could undo the rename.
      disk.sync_directory(directory);
      return name;
    }
    const bool taken = error == std::errc::file_exists || error == std::errc::directory_not_empty;
    if (!taken) break;
  }
  throw std::system_error(error, "cannot create " + (directory / to_string(name)).string());
}

void remove_checkpoint(data::FileSystem& disk, const Path& directory, const CheckpointName& name,
                       std::uint64_t attempt) {
  // The revision keeps the names of several revisions of one step apart.
  const Path away =
      directory / partial_name({.step = name.step, .attempt = attempt + name.revision});
  // Once renamed, it is no checkpoint any more, even if the removal is interrupted.
  if (!disk.rename(directory / to_string(name), away)) data::remove_all(disk, away);
}

void remove_abandoned(data::FileSystem& files, const Path& directory, std::uint64_t step,
                      std::filesystem::file_time_type now) {
  for (const std::string& name : names_in(files, directory)) {
    const auto id = partial_name_from(name);
    if (id && (id->step <= step || last_write(files, directory / name) < now - kAbandonedAfter)) {
      data::remove_all(files, directory / name);
    }
  }
}

SavedCheckpoint CheckpointStore::save(std::uint64_t attempt, const TrainingState& state,
                                      const math::ParameterLayout& layout,
                                      const std::string& config_json, std::size_t keep) {
  const SaveId id{.step = state.step, .attempt = attempt};
  ShardView shard{.range = {.begin = 0, .end = layout.size()},
                  .parameters = state.parameters.span(),
                  .optimizer = {}};
  for (const TrainingState::Tensor& tensor : state.optimizer) {
    shard.optimizer.push_back({.name = tensor.name, .values = tensor.values.span()});
  }
  try {
    std::string weights_sha256;
    const ShardFile file =
        write_shard(id, 0, 1, shard, layout, Until::kItIsDurable, &weights_sha256);
    SavedCheckpoint saved =
        commit_shards(id, std::span(&file, 1), layout, config_json, keep, state.early_stop_state);
    saved.weights_sha256 = std::move(weights_sha256);
    return saved;
  } catch (...) {
    // What was written is useless without an index.
    discard_shards(id);
    throw;
  }
}

ShardFile CheckpointStore::write_shard(const SaveId& id, std::size_t ps, std::size_t ps_count,
                                       const ShardView& shard,
                                       const math::ParameterLayout& layout) const {
  return write_shard(id, ps, ps_count, shard, layout, Until::kItsNameIsDurable, nullptr);
}

ShardFile CheckpointStore::write_shard(const SaveId& id, std::size_t ps, std::size_t ps_count,
                                       const ShardView& shard, const math::ParameterLayout& layout,
                                       Until until, std::string* weights_sha256) const {
  assert(shard.range.end <= layout.size());
  assert(shard.parameters.size() == shard.range.size());
  // Abandoned files are removed before more is written. Every ps does that: if one of them has a
  // disk of its own by mistake, no other task removes what it has written there.
  if (id.step > 0) try_to_remove_abandoned(*files_, path_, id.step - 1);
  const Path directory = path_ / partial_name(id);
  create_partial(*files_, directory);
  ShardFile file{.name = file_name(ps, ps_count),
                 .range = shard.range,
                 .optimizer = tensor_names(shard),
                 .size_bytes = 0,
                 .header_sha256 = {},
                 .sha256 = {}};
  const auto tensors = tensors_of(shard, pieces_of(layout, file.optimizer, shard.range));
  const auto header = data::encode_safetensors_header(
      {{"disttf_format", std::to_string(kCheckpointFormat)}, {"step", std::to_string(id.step)}},
      tensors);
  file.size_bytes = header.size();
  file.header_sha256 = data::sha256_hex(std::as_bytes(std::span(header)));
  for (const data::SafetensorsTensor& tensor : tensors) {
    file.size_bytes += tensor.values.size_bytes();
  }
  Hashes hashes = hashes_of(tensors, weights_sha256 != nullptr ? layout.variables().size() : 0);
  file.sha256 = std::move(hashes.tensors);
  if (weights_sha256 != nullptr) *weights_sha256 = std::move(hashes.first);
  // If the same process commits it, the directory is synced then.
  const auto write = until == Until::kItsNameIsDurable ? data::write_durably : data::write_synced;
  write(*files_, directory / file.name, data::safetensors_parts(header, tensors));
  return file;
}

SavedCheckpoint CheckpointStore::commit_shards(const SaveId& id, std::span<const ShardFile> files,
                                               const math::ParameterLayout& layout,
                                               const std::string& config_json, std::size_t keep,
                                               const EarlyStopState& early_stop_state) {
  const Path partial = path_ / partial_name(id);
  check_shards(files, layout, partial);
  check_presence(*files_, files, partial);
  const std::string index =
      encode_index({.step = id.step,
                    .config_json = config_json,
                    .layout = layout,
                    .optimizer = files.empty() ? std::vector<std::string>() : files[0].optimizer,
                    .files = {files.begin(), files.end()},
                    .early_stop_state = early_stop_state});
  // The index last: a directory with an index has all files of the checkpoint.
  data::write_synced(*files_, partial / kIndexName, std::array{data::bytes_in(index)});
  // Before the directory is synced, so that one sync covers the index's name and the removals.
  remove_strays(*files_, files, partial);
  files_->sync_directory(partial);
  SavedCheckpoint saved;
  Sizes sizes = {{std::string(kIndexName), index.size()}};
  for (const ShardFile& file : files) {
    sizes.emplace_back(file.name, file.size_bytes);
    saved.size_bytes += file.size_bytes;
  }
  // Here and not earlier: this process may have been suspended while it wrote.
  if (permit_) permit_();
  // The rename makes it a checkpoint. A crash before it leaves a partial directory, which a later
  // save removes.
  const CheckpointName name = publish_checkpoint(*files_, partial, path_, id.step);
  saved.name = to_string(name);
  try {
    // Known without a read, since this process has just checked it; used only if old ones are
    // removed.
    if (keep != 0) whole_[saved.name] = std::move(sizes);
    remove_old(name, id.attempt, keep);
  } catch (const std::exception&) {
    // The checkpoint is saved. The next save removes what this one could not.
  }
  try_to_remove_abandoned(*files_, path_, id.step);
  return saved;
}

// Removes older revisions of `saved`, and older checkpoints once there are `keep` complete ones.
// Newer checkpoints stay: if they are complete, they are of another run, and if not, a user should
// look at them.
void CheckpointStore::remove_old(const CheckpointName& saved, std::uint64_t attempt,
                                 std::size_t keep) {
  // The one that was just saved counts.
  std::size_t kept = 1;
  const std::vector<CheckpointName> names = checkpoints_in(*files_, path_);
  std::erase_if(whole_, [&names](const auto& known) {  // another process has removed it
    const auto name = checkpoint_name_from(known.first);
    return !name || std::ranges::find(names, *name) == names.end();
  });
  for (const CheckpointName& name : names) {
    if (name >= saved) continue;
    if (name.step == saved.step || (keep != 0 && kept >= keep)) {
      whole_.erase(to_string(name));
      remove_checkpoint(*files_, path_, name, attempt);
    } else if (keep != 0 && looks_whole(name)) {
      ++kept;
    }
  }
}

// Returns whether its files exist with the right sizes. Readers check the contents.
bool CheckpointStore::looks_whole(const CheckpointName& name) {
  const std::string text = to_string(name);
  const Path directory = path_ / text;
  if (const auto known = whole_.find(text); known != whole_.end()) {
    const bool is_as_known = std::ranges::all_of(known->second, [&](const auto& file) {
      std::error_code error;
      return files_->size_of(directory / file.first, error) == file.second && !error;
    });
    if (is_as_known) return true;
    whole_.erase(known);  // it may have been replaced by another complete one
  }
  try {
    const CheckpointReader reader(*files_, directory);
    if (!reader.check_files().empty()) return false;
    std::error_code error;
    Sizes sizes = {
        {std::string(kIndexName), files_->size_of(directory / std::string(kIndexName), error)}};
    for (const ShardFile& file : reader.index().files) {
      sizes.emplace_back(file.name, file.size_bytes);
    }
    if (!error) whole_[text] = std::move(sizes);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

void CheckpointStore::discard_shards(const SaveId& id) const noexcept {
  try {
    data::remove_all(*files_, path_ / partial_name(id));
  } catch (const std::exception&) {
    return;
  }
}

std::optional<LoadedCheckpoint> CheckpointStore::load_newest(const math::ParameterLayout& layout,
                                                             const Warn& warn) const {
  for (const CheckpointName& name : checkpoints_in(*files_, path_)) {
    try {
      const CheckpointReader reader(*files_, path_ / to_string(name));
      // Compared before the state is read, which may be large.
      if (const auto why = difference(reader.index().layout, layout)) {
        throw Failure(kUsage, reader.path().string() + " is of another model: " + *why +
                                  "; give the flags of its run, or another directory");
      }
      // Reading compares every checksum, so a checkpoint that is returned is whole.
      return LoadedCheckpoint{
          .path = reader.path(), .state = reader.read(), .config_json = reader.index().config_json};
    } catch (const DamagedCheckpoint& damaged) {
      warn(std::string(damaged.what()) + "; skipping this checkpoint");
    } catch (const std::system_error& error) {
      // An unavailable store must not make the run start from an older checkpoint.
      if (is_away(error.code())) throw;
      warn(std::string(error.what()) + "; skipping this checkpoint");
    }
  }
  return std::nullopt;
}

std::optional<std::string> fit_optimizer(TrainingState& state, const math::OptimizerSpec& spec) {
  math::Optimizer optimizer(spec, 0, math::Isa::kGeneric);
  // Of size 0: only the names of its tensors matter here.
  const auto wanted = optimizer.state();
  // Averages are independent of the optimizer: their presence does not decide whether the state
  // fits.
  const bool has_average =
      !state.optimizer.empty() && state.optimizer.back().name == math::kAverageName;
  if (has_average && !optimizer.averages()) {
    // The average is always the last tensor.
    state.optimizer.pop_back();
  }
  const bool lacks_average = optimizer.averages() && !has_average;
  const auto is_same = [](const TrainingState::Tensor& theirs, const math::StateTensor& ours) {
    return theirs.name == ours.name;
  };
  if (std::ranges::equal(state.optimizer, std::span(wanted).first(wanted.size() - lacks_average),
                         is_same)) {
    if (lacks_average) {
      // A new average starts from the restored parameters.
      math::AlignedVector average(state.parameters.size());
      std::copy_n(state.parameters.data(), state.parameters.size(), average.data());
      state.optimizer.push_back(
          {.name = std::string(math::kAverageName), .values = std::move(average)});
    }
    return std::nullopt;
  }
  // Tensors of another optimizer mean something else, even where sizes agree.
  state.optimizer.clear();
  return "the checkpoint has the state of another optimizer than " +
         std::string(math::optimizer_name(spec.kind)) +
         ": the parameters are restored, the optimizer starts from zero";
}

}  // namespace disttf::roles
