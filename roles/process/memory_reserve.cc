#include "roles/process/memory_reserve.h"

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <new>

namespace disttf::roles {
namespace {

// Address space that is given back to the system, since malloc has no other source that serves all
// threads: one that began when there was no room for a heap of its own (64 MiB) gets each of its
// requests from mmap(). In parts, of which the heap needs one to grow (by 132 KiB), so that large
// requests of other threads find little.
constexpr std::size_t kPart = std::size_t{256} << 10U;
std::array<void*, kMemoryReserve / kPart> parts{};  // constant once there are threads
std::atomic<std::size_t> parts_left{0};             // those before it are still set aside

// Gives the next part back, once. False: there is none left.
[[maybe_unused]] bool give_back_part() noexcept {
  std::size_t left = parts_left.load();
  while (left > 0) {
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
    part = mmap(nullptr, kPart, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (part == MAP_FAILED) break;
    ++count;
  }
  parts_left = count;
}

}  // namespace disttf::roles

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

void* operator new(std::size_t size) {
  while (true) {
    if (void* const memory = std::malloc(size > 0 ? size : 1)) return memory;
    if (size > disttf::roles::kMostFromReserve || !disttf::roles::give_back_part()) {
      throw std::bad_alloc();
    }
  }
}

// The library's would do; compilers want them beside each other.
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*size*/) noexcept { std::free(memory); }

#endif
