// One process at a time fetches into a directory; those that wait learn how it went.
//
// flock on ".download.lock": the kernel lets go of it when the holder dies, however it dies. The
// file stays (removing it would let two processes lock two files of that name); a holder whose
// mirrors all failed leaves its sentence in it for those who wait.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "data/file.h"
#include "net/transport/interrupt.h"

namespace disttf::roles {

class DownloadLock {
 public:
  // Waits for the holder, calling `on_wait` first. Throws DownloadError: the file cannot be made
  // or locked, interrupted (ECANCELED), deadline (ETIMEDOUT).
  DownloadLock(const std::filesystem::path& directory, const std::function<void()>& on_wait,
               std::optional<net::Deadline> deadline, const net::Interrupt& interrupt);

  // What the holder that was waited for left: empty if it succeeded, died, or nobody was waited
  // for.
  [[nodiscard]] const std::string& inherited_failure() const noexcept { return inherited_failure_; }
  // Leaves `sentence` to those who wait now. Best effort.
  void leave_failure(std::string_view sentence) noexcept;

 private:
  void read_failure();

  data::FileDescriptor file_;  // closing it unlocks
  std::string inherited_failure_;
};

}  // namespace disttf::roles
