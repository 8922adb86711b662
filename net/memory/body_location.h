// Bodies that are read in place, in the memory of the task that has sent their headers.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace disttf::net {

class SharedView;

// Bodies read in place begin on such a boundary where they are joined with bodies in other memory:
// see net/memory/joined_bodies.h.
inline constexpr std::size_t kPageBytes = 4096;
inline constexpr std::size_t kLineBytes = 64;  // a processor's cache line
// Rounds up to whole pages.
[[nodiscard]] constexpr std::size_t whole_pages(std::size_t bytes) noexcept {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

struct BodyLocation {
  std::shared_ptr<const SharedView> view;  // keeps the memory mapped; null: there is none
  std::size_t offset = 0;                  // in the view's bytes
  std::size_t size = 0;                    // in bytes
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept;
  friend bool operator==(const BodyLocation&, const BodyLocation&) = default;
};

}  // namespace disttf::net
