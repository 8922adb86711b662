// What is written for TensorBoard into a store (roles/store/shell/storage.h), where no file grows:
// one event file after the other, each of which is written once, whole, and never again. Readers
// take the files of a directory in the order of their names (data/tensorboard/event_file.h).
//
// Events wait in memory, and a thread of this object's own writes all that wait as one file: after
// a twentieth of the time that it has been there, between kSoonest and kLatest, so that there are
// hundreds of files at most of a day, and what has just begun is seen at once. A store that is away
// costs a warning; what waits is written when it is back. More than kMostWaiting does not wait.
//
// append() and finish() are for one thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "data/file_system.h"

namespace disttf::roles {

class StoredEvents {
 public:
  static constexpr std::chrono::milliseconds kSoonest{2000};
  static constexpr std::chrono::milliseconds kLatest{300'000};
  // Of an evaluation, with histograms and images, there are tens to hundreds of kB.
  static constexpr std::size_t kMostWaiting = std::size_t{64} << 20U;

  // Starts the thread, which alone uses `files`. Throws std::system_error where there is none to be
  // had. `most_waiting`: bytes of events.
  StoredEvents(std::filesystem::path directory, std::unique_ptr<data::FileSystem> files,
               std::size_t most_waiting = kMostWaiting);
  // Writes what waits: where the store is away, it is tried as often as any request is, and a
  // warning says that it is not there.
  ~StoredEvents();
  StoredEvents(const StoredEvents&) = delete;
  StoredEvents& operator=(const StoredEvents&) = delete;

  // Never waits for the store. std::errc::no_buffer_space: it is left out, as too much waits.
  [[nodiscard]] std::error_code append(std::string_view event);
  // What waits is written now; nothing is appended any more. Does not wait for it.
  void finish();

  // How long after the last file the next one is written, `age` after the first event.
  [[nodiscard]] static std::chrono::milliseconds wait_at(std::chrono::milliseconds age) noexcept;

 private:
  void work();
  // What is in block_. False: the store did not take it.
  [[nodiscard]] bool write_block();

  const std::filesystem::path directory_;
  const std::unique_ptr<data::FileSystem> files_;
  const std::size_t most_waiting_;
  // The thread's.
  std::vector<std::string> names_;  // the file that sorts last, and at first all that are there
  bool knows_names_ = false;
  std::string block_;    // what is being written: records
  std::string name_;     // of its file; a try that is repeated writes the same once more
  std::string version_;  // the first record of it
  bool has_failed_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::string waiting_;       // records
  std::size_t taken_ = 0;     // bytes of block_, which waits, too
  bool is_finished_ = false;  // nothing more comes
  std::thread thread_;
};

}  // namespace disttf::roles
