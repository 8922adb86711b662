// Bodies that are read in place, in the memory of the task that has sent their headers.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

namespace disttf::net {

class JoinedView;
class SharedView;

// Bodies read in place begin on such a boundary where they are joined with bodies in other memory
// (JoinedBodies).
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

// Presents the bodies of several peers as one, read in place: each is mapped behind the one before
// it, which works because they are whole pages.
//
// A ps makes its steps alternately in two buffers, so two mappings serve a whole run. A third
// replaces the older one when a ps was restarted.
//
// Not thread-safe.
class JoinedBodies {
 public:
  JoinedBodies();
  ~JoinedBodies();
  JoinedBodies(const JoinedBodies&) = delete;
  JoinedBodies& operator=(const JoinedBodies&) = delete;

  // Returns the bytes of `places` end to end. Valid until the second call after this one, and as
  // long as the caller keeps the places. Empty where they cannot be mapped so: a ps of disttf
  // always lays them out suitably, another program may not.
  [[nodiscard]] std::span<const std::byte> over(std::span<const BodyLocation> places);

 private:
  std::array<std::unique_ptr<const JoinedView>, 2> joined_;
  std::size_t newest_ = 0;
};

}  // namespace disttf::net
