// Lets one process at a time download into a directory; those that wait learn the result.
//
// flock on ".download.lock": the kernel unlocks it however the holder dies. The file stays, because
// removing it would let two processes lock two files of that name. A holder whose mirrors all
// failed leaves its error in the file for the processes that wait.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "data/file.h"
#include "net/waiting/interrupt.h"

namespace disttf::roles {

class DownloadLock {
 public:
  // Waits for the holder; calls `on_wait` before it waits. Throws DownloadError: the file cannot be
  // created or locked, interrupted (ECANCELED), deadline (ETIMEDOUT).
  DownloadLock(const std::filesystem::path& directory, const std::function<void()>& on_wait,
               std::optional<net::Deadline> deadline, const net::Interrupt& interrupt);

  // The error that the previous holder left; empty if it succeeded or died, or if the lock was
  // free.
  [[nodiscard]] const std::string& inherited_failure() const noexcept { return inherited_failure_; }
  // Leaves `sentence` for the processes that wait now. Best effort.
  void leave_failure(std::string_view sentence) noexcept;

 private:
  void read_failure();

  data::FileDescriptor file_;  // closing it unlocks
  std::string inherited_failure_;
};

}  // namespace disttf::roles
