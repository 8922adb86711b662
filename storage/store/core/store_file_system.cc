#include "storage/store/core/store_file_system.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "storage/store/core/store_error.h"

namespace disttf::roles {

std::vector<std::string> StoreFileSystem::names_in(const Path& directory, std::error_code& error) {
  std::vector<std::string> names;
  // Callers of data::FileSystem expect a code, but a store throws.
  error = error_code_of([&]() -> std::error_code {
    const auto found = entries(directory);
    if (!found) return StoreError::kNotFound;
    for (const StoreEntry& entry : *found) names.push_back(entry.name);
    return {};
  });
  return names;
}

ReadAhead::ReadAhead(std::uint64_t size_bytes, std::string_view first, Read read)
    : size_bytes_(size_bytes), read_(std::move(read)) {
  const auto bytes = std::as_bytes(std::span(first.data(), first.size()));
  // The request that found the size has brought these bytes, so a small file takes no other one.
  window_.assign(bytes.begin(), bytes.end());
}

std::size_t ReadAhead::read(std::uint64_t offset, std::span<std::byte> to) const {
  std::size_t done = 0;
  // The bytes may lie in more than one window.
  while (done < to.size()) {
    const std::size_t count = read_some(offset + done, to.subspan(done));
    if (count == 0) break;
    done += count;
  }
  return done;
}

std::size_t ReadAhead::read_some(std::uint64_t offset, std::span<std::byte> to) const {
  if (offset >= size_bytes_) return 0;
  if (offset < begin_ || offset >= begin_ + window_.size()) {
    // The new window begins at the offset: most files are read forwards.
    const std::uint64_t left = size_bytes_ - offset;
    std::vector<std::byte> next = std::exchange(window_, {});  // empty if the read throws
    next.resize(static_cast<std::size_t>(std::min<std::uint64_t>(left, kReadAtOnce)));
    next.resize(read_(offset, next));
    window_ = std::move(next);
    begin_ = offset;
  }
  const auto skipped = static_cast<std::size_t>(offset - begin_);
  const std::size_t count = std::min(to.size(), window_.size() - skipped);
  if (count > 0) std::memcpy(to.data(), window_.data() + skipped, count);
  return count;
}

}  // namespace disttf::roles
