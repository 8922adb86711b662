// Writes TensorBoard events to a store (storage/store/shell/storage.h), where files cannot be
// appended to: one event file after the other, each written once, as a whole. Readers take the
// files of a directory in the order of their names (data/tensorboard/event_file.h).
//
// Events wait in memory, and this object's thread writes all of them as one file: after a twentieth
// of the time since it was made, but between kSoonest and kLatest. So a day has hundreds of files
// at most, and the first events are visible at once. A store that is unavailable causes a warning;
// waiting events are written when it is back, up to kMostWaiting.
//
// append() and finish() belong to one thread.
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
  // An evaluation, with histograms and images, has tens to hundreds of kB.
  static constexpr std::size_t kMostWaiting = std::size_t{64} << 20U;

  // Starts the thread, which alone uses `files`. Throws std::system_error if no thread can be
  // started. `most_waiting`: bytes of events.
  StoredEvents(std::filesystem::path directory, std::unique_ptr<data::FileSystem> files,
               std::size_t most_waiting = kMostWaiting);
  // Writes the waiting events. If the store is unavailable, it retries like any request, and then
  // logs that they were not written.
  ~StoredEvents();
  StoredEvents(const StoredEvents&) = delete;
  StoredEvents& operator=(const StoredEvents&) = delete;

  // Never waits for the store. Returns std::errc::no_buffer_space if the event is dropped because
  // too much is waiting.
  [[nodiscard]] std::error_code append(std::string_view event);
  // Has the waiting events written now, without waiting for that; nothing is appended any more.
  void finish();

  // Returns how long after the last file the next one is written, `age` after the first event.
  [[nodiscard]] static std::chrono::milliseconds wait_at(std::chrono::milliseconds age) noexcept;

 private:
  void work();
  // Writes block_. Returns false if the store did not accept it.
  [[nodiscard]] bool write_block();

  const std::filesystem::path directory_;
  const std::unique_ptr<data::FileSystem> files_;
  const std::size_t most_waiting_;
  // Of the thread.
  std::vector<std::string> names_;  // the file that sorts last; at first all files of the directory
  bool knows_names_ = false;
  std::string block_;    // the records being written
  std::string name_;     // of its file; a retry writes the same file again
  std::string version_;  // its first record
  bool has_failed_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::string waiting_;       // records
  std::size_t taken_ = 0;     // bytes of block_, which waits, too
  bool is_finished_ = false;  // nothing is appended any more
  std::thread thread_;
};

}  // namespace disttf::roles
