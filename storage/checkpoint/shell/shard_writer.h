// Writes a ps's range of a checkpoint into its --train_dir, on a separate thread, so that neither
// the disk nor the checksums delay the thread that trains. A snapshot shard does not change after
// it was made, so the two threads share it without a lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "math/parameter_layout.h"
#include "run/training_state.h"
#include "storage/checkpoint/core/checkpoint_store.h"
#include "storage/store/shell/storage.h"

namespace disttf::roles {

// What to write, as file `shard` of `shards`.
struct ShardWriteRequest {
  SaveId id;
  std::size_t shard = 0;
  std::size_t shards = 1;
  std::shared_ptr<const SnapshotShard> snapshot;
  math::Range range;                   // of the snapshot shard
  std::vector<std::string> optimizer;  // names of its tensors after the parameters
  math::ParameterLayout layout;
};

// Used by one thread, except for what `Done` says.
class ShardFileWriter {
 public:
  // The file on the disk, or a sentence that says why there is none.
  using Result = std::variant<ShardFile, std::string>;
  // Called once, on the writing thread. If it throws, for lack of memory, it is not called again,
  // so a waiting caller must be able to find the result without this call.
  using Done = std::function<void(Result)>;

  ShardFileWriter() = default;
  ShardFileWriter(const ShardFileWriter&) = delete;
  ShardFileWriter& operator=(const ShardFileWriter&) = delete;
  virtual ~ShardFileWriter() = default;

  // Begins to write. If it cannot, it returns why, and `done` is not called. One write at a time.
  [[nodiscard]] virtual std::optional<std::string> start(ShardWriteRequest request, Done done) = 0;
  // Whether a file is being written.
  [[nodiscard]] virtual bool is_busy() const noexcept = 0;
};

class ShardWriter final : public ShardFileWriter {
 public:
  // `train_dir` may be empty: nothing can be written then.
  explicit ShardWriter(std::filesystem::path train_dir) : store_(disk_, std::move(train_dir)) {}
  ~ShardWriter() override;  // waits for the file being written: a write cannot be interrupted
  ShardWriter(const ShardWriter&) = delete;
  ShardWriter& operator=(const ShardWriter&) = delete;

  [[nodiscard]] std::optional<std::string> start(ShardWriteRequest request, Done done) override;
  [[nodiscard]] bool is_busy() const noexcept override { return busy_; }

 private:
  [[nodiscard]] Result write(const ShardWriteRequest& request) const;

  Storage disk_;
  const CheckpointStore store_;
  std::uint64_t step_ = 0;          // of the last file that was begun
  std::atomic<bool> busy_ = false;  // set by the caller's thread, cleared by the writing one
  std::thread thread_;
};

}  // namespace disttf::roles
