// Memory for the orderly end of a process that has run out of memory.
//
// If a limit (ulimit -v, ulimit -d) leaves nothing, an orderly end still needs some memory: another
// waiting thread, an exception passed from one thread to another, a sentence. Asio allocates a few
// hundred bytes whenever a coroutine begins to wait or is destroyed, and cannot handle an exception
// there: the process would be aborted with "terminated" and no reason. So small requests are served
// from memory set aside, while large ones, which are the usual ones to fail, throw.
#pragma once

#include <cstddef>

namespace disttf::roles {

// Size of the reserve, in bytes: address space only, until it is used. A wait takes at most a page,
// of 4 KiB on x86-64.
inline constexpr std::size_t kMemoryReserve = std::size_t{2} << 20U;
// The largest request of `new` that it serves.
inline constexpr std::size_t kMostFromReserve = std::size_t{4} << 10U;

// Sets the reserve aside. To be called once, before any thread starts. A program that links this
// file has its operator new: if it finds no memory for at most kMostFromReserve bytes, it takes
// them from the reserve while that lasts, and throws std::bad_alloc after that. Under the address
// and the thread sanitizer, which have their own operator, there is no reserve.
void keep_memory_reserve();

}  // namespace disttf::roles
