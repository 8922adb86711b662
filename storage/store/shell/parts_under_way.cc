#include "storage/store/shell/parts_under_way.h"

#include <utility>

#include "run/process/start_thread.h"

namespace disttf::roles {
namespace {

// Each part is kept in memory: 64 MiB in all.
constexpr std::size_t kMaxPartsUnderWay = 4;

}  // namespace

void PartsUnderWay::add(std::span<const std::byte> bytes) {
  // Before the copy, so that no more than the allowed parts are in memory.
  while (under_way_.size() >= kMaxPartsUnderWay) join_oldest();
  // In the list before its thread starts: nothing below can fail once the thread runs, so every
  // thread is joined.
  Part& part = *under_way_.emplace_back(std::make_unique<Part>());
  try {
    // A copy: the caller fills its buffer again while the part is sent.
    part.bytes.assign(bytes.begin(), bytes.end());
    part.number = count_ + 1;
    part.thread = start_thread([this, &part] {
      try {
        part.name = send_(part.number, part.bytes);
      } catch (...) {
        // Rethrown by join_oldest(), on the thread that uploads.
        part.error = std::current_exception();
      }
    });
  } catch (...) {
    under_way_.pop_back();
    throw;
  }
  ++count_;
  bytes_ += bytes.size();
}

void PartsUnderWay::join_oldest() {
  // The oldest first, so that names_ has the order of the parts.
  const std::unique_ptr<Part> part = std::move(under_way_.front());
  under_way_.pop_front();
  part->thread.join();
  if (part->error) std::rethrow_exception(part->error);
  names_.push_back(std::move(part->name));
}

const std::vector<std::string>& PartsUnderWay::finish() {
  while (!under_way_.empty()) join_oldest();
  return names_;
}

void PartsUnderWay::wait() noexcept {
  for (const auto& part : under_way_) {
    // Errors are dropped here: the upload has failed or is abandoned.
    if (part->thread.joinable()) part->thread.join();
  }
}

}  // namespace disttf::roles
