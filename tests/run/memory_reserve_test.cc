#include "run/process/memory_reserve.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <cstdio>
#include <limits>
#include <new>
#include <thread>

#include "net/tcp/spawn.h"
#include "net/waiting/as_tuple.h"

namespace disttf::roles {
namespace {

constexpr std::size_t kSmall = 1024;
constexpr std::size_t kLarge = kMostFromReserve + 1;

// Never frees what it has allocated: the process ends.
bool can_take(std::size_t bytes) {
  try {
    static_cast<void>(::operator new(bytes));
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// In pages.
struct ProcessSize {
  std::size_t all = 0;
  std::size_t data = 0;  // including the stack
};
ProcessSize size_now() {
  ProcessSize size;
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%zu %*u %*u %*u %*u %zu", &size.all, &size.data) != 2) {
    _exit(254);
  }
  static_cast<void>(std::fclose(file));
  return size;
}

// Limits the resource to `pages` and 4 MiB more, for threads with small stacks.
void limit_to(__rlimit_resource resource, std::size_t pages) {
  const rlim_t bytes = pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) + (4U << 20U);
  const rlimit limit{.rlim_cur = bytes, .rlim_max = bytes};
  pthread_attr_t attributes;
  if (setrlimit(resource, &limit) != 0 || pthread_attr_init(&attributes) != 0 ||
      pthread_attr_setstacksize(&attributes, std::size_t{256} << 10U) != 0 ||
      pthread_setattr_default_np(&attributes) != 0) {
    _exit(254);
  }
}
void limit_address_space() { limit_to(RLIMIT_AS, size_now().all); }
void limit_data() { limit_to(RLIMIT_DATA, size_now().data); }

// Returns how many small blocks, up to 200, a process can allocate after it failed to allocate a
// large one. `prepare` is called while memory is available.
template <class Prepare>
int blocks_after_the_end(Prepare prepare, void (*limit)() = limit_address_space) {
  const pid_t child = fork();
  if (child == 0) {
    try {
      limit();
      prepare();
      while (can_take(kLarge)) {
      }
      int count = 0;
      while (count < 200 && can_take(kSmall)) ++count;
      _exit(count);
    } catch (...) {
      _exit(252);
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class MemoryReserveTest : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "this build has an allocator of its own, which no limit may stop";
#endif
  }
};

TEST_F(MemoryReserveTest, IsThereForSmallRequestsOnceThereIsNoMemory) {
  EXPECT_EQ(blocks_after_the_end(keep_memory_reserve), 200);
}

TEST_F(MemoryReserveTest, IsThereBelowALimitOfData) {
  EXPECT_EQ(blocks_after_the_end(keep_memory_reserve, limit_data), 200);
}

// Proves that the tests above can fail.
TEST_F(MemoryReserveTest, WithoutOneThereIsNone) {
  EXPECT_LT(blocks_after_the_end([] {}), 200);
  EXPECT_LT(blocks_after_the_end([] {}, limit_data), 200);
}

TEST_F(MemoryReserveTest, StaysWhereOnlyARequestWasLarge) {
  EXPECT_EQ(blocks_after_the_end([] {
              keep_memory_reserve();
              for (int i = 0; i < 100; ++i) {
                if (can_take(std::numeric_limits<std::ptrdiff_t>::max() / 2)) _exit(253);
              }
            }),
            200);
}

// There is no memory for a heap of the thread's own, which malloc would create.
TEST_F(MemoryReserveTest, IsForAnyThread) {
  EXPECT_EQ(blocks_after_the_end([] {
              keep_memory_reserve();
              std::thread([] {
                while (can_take(kLarge)) {
                }
                // Each takes a page.
                const auto pages = kMemoryReserve / static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
                for (std::size_t i = 0; i < pages / 4; ++i) {
                  if (!can_take(kSmall)) _exit(253);
                }
              }).join();
            }),
            200);
}

// The reason for the reserve: without it, Asio would abort the process here.
TEST_F(MemoryReserveTest, LetsACoroutineBeginToWait) {
  EXPECT_EQ(blocks_after_the_end([] {
              keep_memory_reserve();
              std::thread([] {
                int waits = 0;
                asio::io_context context{1};
                net::spawn(
                    context,
                    [&]() -> asio::awaitable<void> {
                      asio::steady_timer timer(context);
                      while (can_take(kLarge)) {
                      }
                      for (; waits < 20; ++waits) {
                        timer.expires_after(std::chrono::microseconds{1});
                        co_await timer.async_wait(net::kAsTuple);
                      }
                    },
                    net::rethrow);
                context.run();
                if (waits != 20) _exit(253);
              }).join();
            }),
            200);
}

}  // namespace
}  // namespace disttf::roles
