// Threads that compute the parts of one task together, one task after the other.
//
// Each idle member, including the caller, takes the next part. So the caller does not wait for a
// thread that is still waking up, and results must not depend on which member computes a part.
//
// A pool is used by one thread at a time. Its threads take over that thread's floating-point modes
// at construction (math/denormals.h).
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace disttf::math {

class ThreadPool {
 public:
  // How long a thread spins for the next round before it parks: where rounds follow closely, waking
  // a processor takes longer than most rounds.
  static constexpr std::chrono::microseconds kLook{200};
  // For pools whose processors others need between two rounds.
  static constexpr std::chrono::microseconds kSleep{0};

  // `members`: including the caller; the others are threads. Fewer if the system has no more
  // threads. REQUIRES: members > 0.
  explicit ThreadPool(std::size_t members, std::chrono::microseconds look = kLook);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] std::size_t size() const noexcept { return threads_.size() + 1; }

  // Calls part(number, member) once for each number below `parts`, at most one call at a time for
  // each member below size(), and returns when all have finished. REQUIRES: `part` throws nothing.
  template <typename Part>
  void run(std::size_t parts, Part&& part) noexcept {
    using Type = std::remove_reference_t<Part>;
    run({.call = [](void* what, std::size_t number,
                    std::size_t member) { (*static_cast<Type*>(what))(number, member); },
         .what = std::addressof(part)},
        parts);
  }

 private:
  struct Work {
    void (*call)(void* what, std::size_t number, std::size_t member) = nullptr;
    void* what = nullptr;
  };

  void run(Work work, std::size_t parts) noexcept;
  // Takes parts of round `round` until there are none.
  void take_parts(std::uint32_t round, std::size_t member) noexcept;
  void serve(std::size_t member) noexcept;

  // The round in the upper 32 bits, its next free part in the lower. A part of an older round
  // cannot be taken, and `work_` changes only while no part is being computed.
  std::atomic<std::uint64_t> next_{0};
  std::atomic<std::uint32_t> parts_{0};
  std::atomic<std::uint32_t> done_{0};   // finished parts of this round
  std::atomic<std::uint32_t> round_{0};  // sleeping threads wait for a change of it
  std::atomic<bool> stopped_{false};
  const std::chrono::microseconds look_;
  Work work_;
  std::vector<std::thread> threads_;
};

// Divides `size` things, in units of `unit`, into as many parts as `members` can use: part `number`
// is [begin, end), and parts differ by at most one unit. A part has at least one unit.
class EvenParts {
 public:
  EvenParts(std::size_t size, std::size_t unit, std::size_t members) noexcept;
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] std::size_t begin(std::size_t number) const noexcept;
  [[nodiscard]] std::size_t end(std::size_t number) const noexcept { return begin(number + 1); }

 private:
  std::size_t size_;
  std::size_t unit_;
  std::size_t units_;
  std::size_t count_;
};

}  // namespace disttf::math
