// Events for TensorBoard that are written to a store. The store is in memory and can be
// unavailable.
#include "roles/chief/shell/stored_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "data/tensorboard/event_file.h"
#include "data/tensorboard/events.h"
#include "storage/store/core/object_file_system.h"
#include "tests/data/tensorboard/event_reader.h"
#include "tests/storage/memory_store.h"

namespace disttf::roles {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;

std::string event_of(std::uint64_t step) {
  data::SummaryEvent event;
  event.add_scalar("loss", 0.5);
  return event.event({.wall_time = 1.5, .step = step});
}

class StoredEventsTest : public testing::Test {
 protected:
  StoredEventsTest() {
    store_->before = [this](std::size_t) {
      if (!is_away_) return;
      ++refused_;
      refused_.notify_all();
      throw std::system_error(StoreError::kAway);
    };
  }
  // The events have a store of their own, for as long as they exist.
  std::unique_ptr<StoredEvents> events(std::size_t most_waiting = StoredEvents::kMostWaiting) {
    return std::make_unique<StoredEvents>("s3://bucket/log/chief",
                                          std::make_unique<ObjectFileSystem>(store_, "s3://bucket"),
                                          most_waiting);
  }
  static void add(StoredEvents& events, std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t step = first; step <= last; ++step) {
      EXPECT_FALSE(events.append(event_of(step)));
    }
  }
  // Returns the steps in all files, in the order of the files' names. Each file must begin with its
  // version.
  [[nodiscard]] std::vector<std::uint64_t> steps() const {
    std::vector<std::uint64_t> found;
    for (const auto& [key, bytes] : store_->objects) {
      EXPECT_THAT(key, StartsWith("log/chief/events.out.tfevents."));
      const auto events = data::read_events(bytes).events;
      EXPECT_TRUE(!events.empty() && data::has_field(events.front(), 3)) << key;
      for (std::size_t i = 1; i < events.size(); ++i) found.push_back(data::step_of(events[i]));
    }
    return found;
  }

  std::shared_ptr<MemoryStore> store_ = std::make_shared<MemoryStore>();
  std::atomic<bool> is_away_ = false;
  std::atomic<int> refused_ = 0;
};

TEST_F(StoredEventsTest, AreThereAtTheEndBehindThoseOfEarlierProcesses) {
  for (const std::uint64_t first : {1U, 4U, 7U}) {
    const auto all = events();
    add(*all, first, first + 2);
  }
  EXPECT_GE(store_->objects.size(), 3U);
  EXPECT_THAT(steps(), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9));
}

TEST_F(StoredEventsTest, OfNothingThereIsNoFile) {
  { const auto none = events(); }
  EXPECT_THAT(steps(), IsEmpty());
}

TEST_F(StoredEventsTest, WaitForAStoreThatIsAwayAndGoThereInTheirOrder) {
  is_away_ = true;
  auto all = events();
  add(*all, 1, 3);
  refused_.wait(0);  // the first file was refused
  add(*all, 4, 6);
  is_away_ = false;
  all.reset();
  EXPECT_GE(store_->objects.size(), 2U);
  EXPECT_THAT(steps(), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_F(StoredEventsTest, DoNotWaitForEver) {
  is_away_ = true;
  auto all = events();
  add(*all, 1, 3);
  all.reset();
  EXPECT_GE(refused_, 1);
  EXPECT_THAT(steps(), IsEmpty());
}

TEST_F(StoredEventsTest, ThatHaveNoRoomAreLeftOut) {
  const std::size_t size = data::event_record(event_of(1)).size();
  is_away_ = true;
  auto all = events(2 * size);
  add(*all, 1, 2);
  EXPECT_EQ(all->append(event_of(3)), std::errc::no_buffer_space);
  is_away_ = false;
  all.reset();
  EXPECT_THAT(steps(), ElementsAre(1, 2));
}

TEST(StoredEventsWait, IsATwentiethOfTheTimeWithinBounds) {
  EXPECT_EQ(StoredEvents::wait_at(0s), 2s);
  EXPECT_EQ(StoredEvents::wait_at(60s), 3s);
  EXPECT_EQ(StoredEvents::wait_at(24h), 5min);
}

}  // namespace
}  // namespace disttf::roles
