// Threads that compute the parts of one thing together, one thing after the other.
//
// Parts are taken one by one by whoever is free, the caller among them. So nobody waits for a
// thread that is still waking up, and what is computed must not depend on who computes which part.
//
// A pool is used by one thread at a time, whose floating-point modes at construction its threads
// take over (math/denormals.h).
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
  // For how long a thread looks for the next round before it sleeps: where rounds follow each other
  // closely, to wake a processor takes longer than most of them.
  static constexpr std::chrono::microseconds kLook{200};
  // Where others have use for the processor between two rounds.
  static constexpr std::chrono::microseconds kSleep{0};

  // `members`: the caller is one of them, the others are threads; fewer where the system has no
  // more of these. REQUIRES: members > 0.
  explicit ThreadPool(std::size_t members, std::chrono::microseconds look = kLook);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] std::size_t size() const noexcept { return threads_.size() + 1; }

  // Calls part(number, member) once for each number below `parts`, at most one at a time for each
  // member below size(), and returns when all calls have. REQUIRES: `part` throws nothing.
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

  // The round in the upper 32 bits, the next part of it that nobody has taken in the lower. A part
  // of an older round cannot be taken any more, and `work_` changes only when none is being
  // computed.
  std::atomic<std::uint64_t> next_{0};
  std::atomic<std::uint32_t> parts_{0};
  std::atomic<std::uint32_t> done_{0};   // parts of this round that have been computed
  std::atomic<std::uint32_t> round_{0};  // what sleeping threads wait for
  std::atomic<bool> stopped_{false};
  const std::chrono::microseconds look_;
  Work work_;
  std::vector<std::thread> threads_;
};

// As many parts as `members` have use for, of `size` things in units of `unit`: part `number` is
// [begin, end), and parts differ by one unit at most. A part has one unit or more.
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
