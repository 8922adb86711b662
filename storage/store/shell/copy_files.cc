#include "storage/store/shell/copy_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "run/outcome.h"
#include "run/process/log.h"
#include "run/process/start_thread.h"
#include "storage/store/core/store_url.h"

namespace disttf::roles {
namespace {

constexpr std::size_t kCopiedAtOnceBytes = std::size_t{1} << 20U;
constexpr double kBytesOfMegabyte = 1e6;

// Whether the file's owner may run it. Objects of a store have no such mode.
bool may_be_run(const std::filesystem::path& from) {
  using std::filesystem::perms;
  std::error_code error;
  return !is_store_url(from) &&
         (std::filesystem::status(from, error).permissions() & perms::owner_exec) != perms::none &&
         !error;
}

// Copies files by several threads, each of which takes the next file.
class Copying {
 public:
  explicit Copying(std::vector<FileToCopy> files) : files_(std::move(files)) {}

  // Rethrows the first exception of a thread.
  void run(std::size_t threads) {
    std::vector<std::thread> workers;
    const std::size_t wanted = std::min(threads, files_.size());
    running_ = wanted;
    try {
      for (std::size_t i = 0; i < wanted; ++i) {
        workers.push_back(start_thread([this] { work(); }));
      }
    } catch (const std::system_error&) {  // fewer threads suffice, but at least one is needed
      const std::scoped_lock lock(mutex_);
      // Threads that were not started do not count down, and print_progress() waits for 0.
      running_ -= wanted - workers.size();
      if (workers.empty()) throw;
    }
    print_progress();
    // Joined before the exception is rethrown: the threads use this object.
    for (std::thread& worker : workers) worker.join();
    if (error_) std::rethrow_exception(error_);
  }

  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  void work() {
    try {
      // One for each thread and all of its files.
      std::vector<std::byte> buffer(kCopiedAtOnceBytes);
      // Stops at the first failure of any thread.
      for (std::size_t i = next_++; i < files_.size() && !has_failed_; i = next_++) {
        copy(files_[i], buffer);
      }
    } catch (...) {
      const std::scoped_lock lock(mutex_);
      // Later errors are often consequences of the first.
      if (!error_) error_ = std::current_exception();
      has_failed_ = true;
    }
    const std::scoped_lock lock(mutex_);
    --running_;
    wake_.notify_all();
  }

  void copy(const FileToCopy& file, std::vector<std::byte>& buffer) {
    Storage storage;
    // Opened first, so that a missing source leaves no directory and no file.
    const auto source = storage.open(file.from);
    data::create_directories(
        storage, file.to.has_parent_path() ? file.to.parent_path() : std::filesystem::path("."));
    const auto target = storage.create_output(file.to);
    std::uint64_t at = 0;
    // A failure of another thread ends the copy of a large file at once.
    while (at < source->size_bytes() && !has_failed_) {
      const std::size_t count = source->read(at, buffer);
      if (count == 0) throw Failure(kBadData, file.from.string() + " is truncated");
      target->write({reinterpret_cast<const std::uint8_t*>(buffer.data()), count});
      at += count;
      bytes_ += count;
    }
    // Leaves no file under the final name after a failure.
    if (has_failed_) return;
    if (may_be_run(file.from)) target->allow_execution();
    target->sync();
    target->take_name();
  }

  void print_progress() {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, std::chrono::seconds(1), [this] { return running_ == 0; })) {
      log_info(fmt::format("{:.1f} MB so far", static_cast<double>(bytes_) / kBytesOfMegabyte));
    }
  }

  const std::vector<FileToCopy> files_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<std::uint64_t> bytes_ = 0;
  std::atomic<bool> has_failed_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::size_t running_ = 0;
  std::exception_ptr error_;
};

}  // namespace

bool collect_files(Storage& storage, const std::filesystem::path& from,
                   const std::filesystem::path& to, std::vector<FileToCopy>& files) {
  const auto entries = storage.entries(from);
  if (!entries) return false;
  for (const StoreEntry& entry : *entries) {
    const std::filesystem::path inner = from / entry.name;
    if (!entry.is_directory) {
      files.push_back({.from = inner,
                       .to = to / entry.name,
                       .size_bytes = entry.size_bytes,
                       .modified = entry.modified});
    } else {
      static_cast<void>(collect_files(storage, inner, to / entry.name, files));
    }
  }
  return true;
}

FileToCopy file_to_copy(Storage& storage, const std::filesystem::path& from,
                        const std::filesystem::path& to) {
  std::error_code error;
  const std::uint64_t size = storage.size_of(from, error);
  if (error) throw std::system_error(error, "cannot read " + from.string());
  return {.from = from, .to = to, .size_bytes = size, .modified = storage.last_write(from)};
}

std::uint64_t copy_files(std::vector<FileToCopy> files, std::size_t threads) {
  Copying copying(std::move(files));
  copying.run(threads);
  return copying.bytes();
}

}  // namespace disttf::roles
