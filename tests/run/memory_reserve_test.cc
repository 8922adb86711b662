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
#include <cstddef>
#include <cstdio>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "net/tcp/spawn.h"
#include "net/waiting/as_tuple.h"
#include "net/wire/messages.h"
#include "net/wire/replication.h"
#include "roles/ps/core/shard.h"
#include "run/process/tensor_memory.h"
#include "tests/run/run_configs.h"

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

// The memory for a range's updates, as its primary sizes it and as its backup computes it, each
// with a function of its own.

struct Range {
  bool sync = true;
  std::size_t trainers = 2;
  std::size_t floats = 0;
  std::size_t updates = 0;  // in memory at once
  bool has_states = false;  // two more, with a state, fit as well
};

std::string name_of(const testing::TestParamInfo<Range>& info) {
  const Range& range = info.param;
  return (range.sync ? "sync_" : "async_") + std::to_string(range.trainers) + "_trainers_" +
         std::to_string(range.floats) + "_floats";
}

class UpdateMemory : public testing::TestWithParam<Range> {
 protected:
  // Three tensors of state follow a gradient.
  static UpdateShape shape() {
    const Range& range = GetParam();
    return {.trainers = range.trainers,
            .is_sync = range.sync,
            .plain = range.floats,
            .with_state = 4 * range.floats};
  }
  static std::vector<std::byte> body_of(std::size_t floats) {
    return std::vector<std::byte>(net::padded_update_head_bytes(GetParam().trainers) +
                                  floats * sizeof(float));
  }
  // The primary leaves an update. The backup, which is awake, sees the body, and the header unless
  // it is `sent`.
  void leave(std::uint64_t update, const std::vector<std::byte>& body, bool sent) {
    SCOPED_TRACE(update);
    net::FrameHeader header{.kind = net::FrameKind::kUpdate, .request_id = update};
    ASSERT_EQ(slots_->leave(header, body, {}), sent ? net::Left::kBody : net::Left::kHeader);
    if (!sent) {
      net::FrameHeader taken;
      ASSERT_TRUE(bodies_->has_header());
      ASSERT_FALSE(bodies_->take_header(taken));
      EXPECT_EQ(taken, header);
    }
    const auto found = bodies_->find(header);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->bytes.size(), body.size());
  }

  std::unique_ptr<net::BodyRing> slots_;
  std::unique_ptr<net::InPlaceBodies> bodies_;
};

TEST(TensorMemory, IsTakenForNoPeerOnAnotherMachine) {
  bool has_asked = false;
  net::InPlaceBodies bodies([&has_asked] {
    has_asked = true;
    return net::InPlaceTerms{.memory = net::ParameterMemory::create(4096, 0), .most = 4096};
  });
  EXPECT_TRUE(
      bodies.answer({.listener_name = 0x0123'4567'89AB'CDEF, .token = 1, .size = 64}).empty());
  EXPECT_FALSE(bodies.has_agreed());
  EXPECT_FALSE(has_asked) << "there is no peer to hand it to";
}

TEST_P(UpdateMemory, IsAsLargeForTheBackupAsForThePrimary) {
  const Range& range = GetParam();
  slots_ = make_update_slots({}, shape());
  if (range.updates == 0) {
    EXPECT_EQ(slots_, nullptr);
    return;
  }
  ASSERT_NE(slots_, nullptr);
  const std::size_t whole_pages = net::whole_pages(range.floats * sizeof(float)) / sizeof(float);
  const net::InPlaceTerms terms{.memory = make_parameter_memory({}, whole_pages, range.trainers),
                                .slot = slot_of_primary(range.trainers),
                                .least = least_of_primary(shape()),
                                .most = most_of_primary(shape())};
  // The two agree on the memory.
  bodies_ = std::make_unique<net::InPlaceBodies>([&terms] { return terms; });
  const auto second = slots_->answered(bodies_->answer(slots_->offer()));
  ASSERT_TRUE(second);
  ASSERT_FALSE(slots_->answered(bodies_->answer(*second)));
  ASSERT_TRUE(bodies_->has_agreed());
  ASSERT_TRUE(slots_->has_agreed());

  // Each slot can hold the largest body, and each of the first seven updates has a mailbox for its
  // header.
  terms.memory->set_parked(false);
  std::uint64_t update = 1;
  for (; update <= range.updates; ++update) {
    leave(update, body_of(range.floats), /*sent=*/update > net::kHeadersInMailbox);
  }
  net::FrameHeader header{.kind = net::FrameKind::kUpdate, .request_id = update};
  EXPECT_EQ(slots_->leave(header, body_of(range.floats), {}), net::Left::kNot)
      << "there are more than documented";
  const bool has_states = updates_per_state(shape()) > 1;
  EXPECT_EQ(has_states, range.has_states);
  for (const std::uint64_t state : {update, update + 1}) {
    if (has_states && range.floats != 0) {
      leave(state, body_of(4 * range.floats), /*sent=*/state > net::kHeadersInMailbox);
    }
  }
  EXPECT_EQ(slots_->leave(header, body_of(4 * range.floats), {}), net::Left::kNot);
}

INSTANTIATE_TEST_SUITE_P(
    Ranges, UpdateMemory,
    testing::Values(
        Range{.sync = true, .trainers = 2, .floats = 0, .updates = 14, .has_states = true},
        Range{.sync = true, .trainers = 65, .floats = 79'510, .updates = 14, .has_states = true},
        Range{.sync = true, .trainers = 2, .floats = 850'000, .updates = 9, .has_states = true},
        Range{.sync = true, .trainers = 2, .floats = 2'000'000, .updates = 2},
        Range{.sync = true, .trainers = 2, .floats = 10'000'000, .updates = 1},
        Range{.sync = true, .trainers = 2, .floats = 70'000'000, .updates = 0},
        Range{.sync = false, .trainers = 1, .floats = 1000, .updates = 14, .has_states = true},
        Range{.sync = false, .trainers = 3, .floats = 1000, .updates = 14, .has_states = true},
        Range{.sync = false, .trainers = 100, .floats = 1000, .updates = 14, .has_states = true}),
    name_of);

// With averages, too, and with trainers that are answered from copies of their own.
TEST(TensorMemory, ATrainerMapsAllThatAPsOfItsRunMayHave) {
  const math::Range range{.begin = 0, .end = 79'510};
  for (const bool sync : {true, false}) {
    for (const float average_decay : {0.0F, 0.9F}) {
      for (const std::size_t trainers : {1U, 2U, 3U, 64U}) {
        RunConfig config = base_config();
        config.sync_replicas = sync;
        config.optimizer.average_decay = average_decay;
        config.trainers = trainers;
        const std::size_t bytes = ShardStorage::arena_size(config, range) * sizeof(float);
        EXPECT_LE(net::ParameterMemory::largest(bytes, slot_of_primary(trainers) + 1),
                  most_of_ps(range.size(), trainers))
            << sync << " " << average_decay << " " << trainers;
      }
    }
  }
}

TEST(UpdateMemory, OverTcpAloneThereIsNone) {
  Task task;
  task.transport = Transport::kTcp;
  EXPECT_EQ(make_update_slots(task, {.trainers = 2, .plain = 1000, .with_state = 4000}), nullptr);
}

}  // namespace
}  // namespace disttf::roles
