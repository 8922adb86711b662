// The lock of a --train_dir (storage/checkpoint/core/run_lock.h) as the chief holds it: taken by
// the constructor, renewed by a thread, released by the destructor.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "net/waiting/interrupt.h"
#include "net/wire/cluster.h"
#include "run/process/stop_signal.h"
#include "storage/checkpoint/core/run_lock.h"
#include "storage/store/shell/storage.h"

namespace disttf::roles {

// Returns whether the process with this pid and start time is alive; nullopt if this process cannot
// see that.
[[nodiscard]] std::optional<bool> process_lives(std::int64_t pid, std::uint64_t started);
// Returns this process's lock, as the chief of `cluster` that saves in `directory`.
[[nodiscard]] RunLockOwner own_lock(const std::filesystem::path& directory,
                                    const net::Cluster& cluster);

class HeldRunLock {
 public:
  // Takes the lock; if its owner may be dead, waits up to kLockExpiry for it to be renewed. Throws
  // Failure(kUsage) if another run has it, or what `stop` throws. A disk error is only logged, and
  // each renewal tries to take the lock again. If another run takes the lock later, the task ends,
  // through `stop`, which must outlive the object.
  HeldRunLock(const std::filesystem::path& directory, const net::Cluster& cluster,
              StopSignal& stop);
  ~HeldRunLock();
  HeldRunLock(const HeldRunLock&) = delete;
  HeldRunLock& operator=(const HeldRunLock&) = delete;

  // As RunLockHolder::check(), but does not throw where the lock cannot be read.
  void check() const;

 private:
  void take();
  void keep();

  const std::filesystem::path directory_;
  StopSignal& stop_;
  Storage disk_;
  RunLockHolder holder_;
  std::atomic<RunLockHolder::Time> looked_{};  // the holder's
  net::Interrupt done_;
  std::thread thread_;
};

}  // namespace disttf::roles
