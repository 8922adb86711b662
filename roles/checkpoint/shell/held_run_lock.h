// The lock of a --train_dir (roles/checkpoint/core/run_lock.h), as the chief holds it: taken when
// the object is made, renewed by a thread of its own, given back when the object goes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "net/transport/interrupt.h"
#include "net/wire/cluster.h"
#include "roles/checkpoint/core/run_lock.h"
#include "roles/process/stop_signal.h"
#include "roles/store/shell/storage.h"

namespace disttf::roles {

// Whether the process with this pid and start time lives; nullopt: this process cannot see it.
[[nodiscard]] std::optional<bool> process_lives(std::int64_t pid, std::uint64_t started);
// This process, as the chief of `cluster` that saves in `directory`.
[[nodiscard]] RunLockOwner own_lock(const std::filesystem::path& directory,
                                    const net::Cluster& cluster);

class HeldRunLock {
 public:
  // Takes the lock; where its owner may be dead, waits up to kLockExpiry for it to be renewed.
  // Throws Failure(kUsage) where another run has it, and what `stop` ends with. A disk that fails
  // costs a warning: the lock is tried for again with each renewal. `stop` ends the task where
  // another run has taken the lock later; it must outlive the object.
  HeldRunLock(const std::filesystem::path& directory, const net::Cluster& cluster,
              StopSignal& stop);
  ~HeldRunLock();
  HeldRunLock(const HeldRunLock&) = delete;
  HeldRunLock& operator=(const HeldRunLock&) = delete;

 private:
  struct Seen;
  void take();
  [[nodiscard]] bool try_to_take(Seen& seen);
  [[nodiscard]] bool take_over(const std::string& text);
  void keep();
  void renew();

  const std::filesystem::path directory_;
  StopSignal& stop_;
  Storage disk_;
  RunLockFile file_;
  RunLockOwner self_;    // the renewing thread's, once it runs
  LockRenewal renewal_;  // of the same thread
  net::Interrupt done_;
  std::thread thread_;
};

}  // namespace disttf::roles
