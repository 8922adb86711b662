#include "run/process/memory_reserve.h"

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <new>

namespace disttf::roles {
namespace {

// Address space that is returned to the system, because malloc has no other source that serves all
// threads: a thread that started when there was no room for its own heap (64 MiB) gets each request
// from mmap(). It is split into parts, so that large requests of other threads find little: the
// heap grows by 132 KiB, or, if something is in its way, by 1 MiB, which takes four parts.
constexpr std::size_t kPart = std::size_t{256} << 10U;
std::array<void*, kMemoryReserve / kPart> parts{};  // constant once there are threads
std::atomic<std::size_t> parts_left{0};             // the parts before this one are still set aside

// Returns the next part to the system. Returns false if none is left.
[[maybe_unused]] bool give_back_part() noexcept {
  std::size_t left = parts_left.load();
  while (left > 0) {
    // Without a lock, as malloc() is called anywhere. A part belongs to the thread that counted it
    // off, so no other one unmaps it.
    if (parts_left.compare_exchange_weak(left, left - 1)) {
      munmap(parts[left - 1], kPart);
      return true;
    }
  }
  return false;
}

}  // namespace

void keep_memory_reserve() {
  std::size_t count = 0;
  for (void*& part : parts) {
    // Mapped writable though never written: only that counts for `ulimit -d` and --memory.
    part = mmap(nullptr, kPart, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (part == MAP_FAILED) break;
    ++count;
  }
  parts_left = count;
}

}  // namespace disttf::roles

#if defined(__has_feature)  // clang
#define DISTTF_HAS_FEATURE(feature) __has_feature(feature)
#else
#define DISTTF_HAS_FEATURE(feature) 0
#endif

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !DISTTF_HAS_FEATURE(address_sanitizer) && !DISTTF_HAS_FEATURE(thread_sanitizer)

void* operator new(std::size_t size) {
  while (true) {
    // malloc(0) may return null, which operator new must not. After a part was returned the request
    // is tried again, since another thread may have taken that memory.
    if (void* const memory = std::malloc(size > 0 ? size : 1)) return memory;
    if (size > disttf::roles::kMostFromReserve || !disttf::roles::give_back_part()) {
      throw std::bad_alloc();
    }
  }
}

// The library's operators would do; compilers expect them next to each other.
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*size*/) noexcept { std::free(memory); }

#endif
