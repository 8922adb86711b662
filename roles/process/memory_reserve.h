// Memory for the end of a process that has run out of it.
//
// Where a limit (ulimit -v, ulimit -d) leaves nothing, what ends a process in order needs some:
// another thread that waits, an exception that is carried from one thread to the next, a sentence.
// Asio allocates a few hundred bytes wherever a coroutine begins to wait or is taken apart, and
// cannot be told by an exception there: the process would be aborted and say "terminated", and not
// why. So small requests are met from what was set aside, while large ones, which are what usually
// fails, throw.
#pragma once

#include <cstddef>

namespace disttf::roles {

// What is set aside, in bytes: address space, and no memory until somebody has it. A wait takes at
// most a page, of 4 KiB on x86-64.
inline constexpr std::size_t kMemoryReserve = std::size_t{2} << 20U;
// The largest request of `new` that it is there for.
inline constexpr std::size_t kMostFromReserve = std::size_t{4} << 10U;

// Sets the reserve aside. Call it once, before any thread. A program that has this file has its
// operator new: one that finds no memory for at most kMostFromReserve bytes takes them from the
// reserve while that lasts, and throws std::bad_alloc after it. Under the address and the thread
// sanitizer, which have their own, there is none.
void keep_memory_reserve();

}  // namespace disttf::roles
