#include "roles/chief/shell/stored_events.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "data/tensorboard/event_file.h"
#include "data/tensorboard/events.h"
#include "run/process/log.h"
#include "run/process/start_thread.h"

namespace disttf::roles {
namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

StoredEvents::StoredEvents(std::filesystem::path directory, std::unique_ptr<data::FileSystem> files,
                           std::size_t most_waiting)
    : directory_(std::move(directory)),
      files_(std::move(files)),
      most_waiting_(most_waiting),
      thread_(start_thread([this] { work(); })) {}

StoredEvents::~StoredEvents() {
  // The last events are written before the thread ends.
  finish();
  thread_.join();
}

std::chrono::milliseconds StoredEvents::wait_at(std::chrono::milliseconds age) noexcept {
  // In proportion to the age: a short run is seen soon, and a long one makes few requests.
  return std::clamp(age / 20, kSoonest, kLatest);
}

std::error_code StoredEvents::append(std::string_view event) {
  const std::string record = data::event_record(event);
  const std::scoped_lock lock(mutex_);
  // Events must not fill the memory while the store is unavailable.
  // taken_: a block that is being written still takes memory.
  if (record.size() > most_waiting_ - waiting_.size() - taken_) {
    return std::make_error_code(std::errc::no_buffer_space);
  }
  waiting_ += record;
  return {};
}

void StoredEvents::finish() {
  const std::scoped_lock lock(mutex_);
  // Ends the wait, so that the last block is written at once.
  is_finished_ = true;
  changed_.notify_one();
}

void StoredEvents::work() {
  const auto began = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  while (true) {
    const auto now = std::chrono::steady_clock::now();
    const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(now - began);
    changed_.wait_until(lock, now + wait_at(age), [this] { return is_finished_; });
    const bool is_last = is_finished_;
    // A block that could not be written is tried again as it is, under the same name.
    if (block_.empty()) block_.swap(waiting_);
    taken_ = block_.size();
    bool is_written = true;
    if (!block_.empty()) {
      // Not while writing: append() must not wait for the store.
      lock.unlock();
      is_written = write_block();
      lock.lock();
      taken_ = block_.size();
    }
    const bool is_more = is_written && !waiting_.empty();
    // After the end one more round follows for events that came during the last write.
    if (!is_last || is_more) continue;
    if (!is_written) {
      log_warning("--log_dir: the last events for TensorBoard were not written to " +
                  directory_.string() + ": the store did not accept them");
    }
    return;
  }
}

bool StoredEvents::write_block() {
  try {
    if (!knows_names_) {
      std::error_code error;
      names_ = files_->names_in(directory_, error);
      // A directory that cannot be listed might have files whose names would be used again.
      if (error && error != std::errc::no_such_file_or_directory) throw std::system_error(error);
      data::create_directories(*files_, directory_);
      knows_names_ = true;
    }
    if (name_.empty()) {
      name_ = data::new_event_file_name(names_);
      version_ = data::event_record(data::file_version_event(seconds_now()));
    }
    const auto bytes_of = [](const std::string& text) {
      return std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
    };
    // Each block is a file of its own, since an object of a store cannot be appended to.
    data::write_durably(*files_, directory_ / name_,
                        std::array{bytes_of(version_), bytes_of(block_)});
  } catch (const std::exception& error) {
    if (!std::exchange(has_failed_, true)) {
      log_warning("--log_dir: " + directory_.string() +
                  " cannot be written now; will retry: " + error.what());
    }
    return false;
  }
  has_failed_ = false;
  // The newest name suffices: the next one must only sort after it.
  names_.assign(1, std::exchange(name_, {}));
  block_.clear();
  return true;
}

}  // namespace disttf::roles
