// A store as a file system that can also list a directory with sizes and times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "data/file_system.h"

namespace disttf::roles {

// An entry of a directory.
struct StoreEntry {
  std::string name;
  bool is_directory = false;
  std::uint64_t size_bytes = 0;  // of a file
  // min(): unknown, as for a bucket's folders. (file_time_type{} is the year 2174 in libstdc++.)
  std::filesystem::file_time_type modified = std::filesystem::file_time_type::min();
};

class StoreFileSystem : public data::FileSystem {
 public:
  // In the order of names. nullopt: there is no such directory. Throws std::system_error.
  [[nodiscard]] virtual std::optional<std::vector<StoreEntry>> entries(const Path& directory) = 0;
  // The names of entries().
  [[nodiscard]] std::vector<std::string> names_in(const Path& directory,
                                                  std::error_code& error) final;
};

// A store's file that is read in larger pieces than requested: an answer takes tens of
// milliseconds, so many small reads would mostly wait.

// Bytes per request: half of it would suffice, double only costs memory.
inline constexpr std::size_t kReadAtOnce = std::size_t{8} << 20U;

class ReadAhead final : public data::OpenFile {
 public:
  // Reads up to to.size() bytes from `offset` on, which the file has; returns how many it read.
  using Read = std::function<std::size_t(std::uint64_t offset, std::span<std::byte> to)>;

  // `first`: bytes from the beginning that are known already.
  ReadAhead(std::uint64_t size_bytes, std::string_view first, Read read);

  [[nodiscard]] std::uint64_t size_bytes() const override { return size_bytes_; }
  [[nodiscard]] std::size_t read(std::uint64_t offset, std::span<std::byte> to) const override;

 private:
  // Reads up to the end of the window.
  [[nodiscard]] std::size_t read_some(std::uint64_t offset, std::span<std::byte> to) const;

  const std::uint64_t size_bytes_;
  const Read read_;
  // The last window, from begin_ on. Used by the one thread that reads.
  mutable std::vector<std::byte> window_;
  mutable std::uint64_t begin_ = 0;
};

}  // namespace disttf::roles
