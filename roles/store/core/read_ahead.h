// A file of a store that is read in larger pieces than it is asked for: a store answers in tens of
// milliseconds, so small ones would be nothing but waiting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "data/file_system.h"

namespace disttf::roles {

// Read at a time: half of it would do, double only costs memory.
inline constexpr std::size_t kReadAtOnce = std::size_t{8} << 20U;

class ReadAhead final : public data::OpenFile {
 public:
  // Fills `to` from `offset` on, which the file has that many bytes of; returns how many came.
  using Read = std::function<std::size_t(std::uint64_t offset, std::span<std::byte> to)>;

  // `first`: the bytes that are known already, from the beginning on.
  ReadAhead(std::uint64_t size_bytes, std::string_view first, Read read);

  [[nodiscard]] std::uint64_t size_bytes() const override { return size_bytes_; }
  [[nodiscard]] std::size_t read(std::uint64_t offset, std::span<std::byte> to) const override;

 private:
  // Up to the end of what is read at a time.
  [[nodiscard]] std::size_t read_some(std::uint64_t offset, std::span<std::byte> to) const;

  const std::uint64_t size_bytes_;
  const Read read_;
  // What was read last, from begin_ on. Of the one thread that reads.
  mutable std::vector<std::byte> window_;
  mutable std::uint64_t begin_ = 0;
};

}  // namespace disttf::roles
