#include "data/tensorboard/event_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <vector>

#include "data/crc32c.h"
#include "data/tensorboard/events.h"
#include "tests/data/scratch.h"
#include "tests/data/tensorboard/event_reader.h"

namespace disttf::data {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

std::string text_of(const std::filesystem::path& path) {
  const test::Bytes bytes = test::read(path);
  return {bytes.begin(), bytes.end()};
}

// Returns the steps of the events after the version record, from a possibly truncated file.
std::vector<std::uint64_t> steps_in(std::string_view file) {
  std::vector<std::uint64_t> steps;
  for (const std::string& event : read_events(file).events) {
    if (!has_field(event, 3)) {
      steps.push_back(step_of(event));
    }
  }
  return steps;
}

std::string scalar_event(std::uint64_t step) {
  SummaryEvent event;
  event.add_scalar("loss", 0.5);
  return event.event({.wall_time = 1.5, .step = step});
}

TEST(EventRecord, HasTheBytesOfTheFormat) {
  const std::string event =
      std::string("\x09\x00\x00\x80\x38\x99\xd6\xd7\x41\x1a\x0d", 11) + "brain.Event:2";
  ASSERT_EQ(event.size(), 24U);
  const std::string length("\x18\0\0\0\0\0\0\0", 8);
  EXPECT_EQ(event_record(event), length + "\xa3\x7f\x4b\x22" + event + "\x12\x4b\x36\xab");
}

TEST(EventFileName, SortsBehindEveryOtherOfItsDirectoryWhateverTheClockSays) {
  const std::vector<std::string> names = {"events.out.tfevents.1700000005.a.1.0", "model.txt"};
  EXPECT_EQ(event_file_name(1'700'000'000, names, "host", 77),
            "events.out.tfevents.1700000006.host.77.0");
  EXPECT_EQ(event_file_name(1'700'000'009, names, "host", 77),
            "events.out.tfevents.1700000009.host.77.0");
  EXPECT_EQ(event_file_name(9, {}, "host", 1), "events.out.tfevents.0000000009.host.1.0");
}

class EventFiles : public ::testing::Test {
 protected:
  test::ScratchDirectory scratch_;
};

TEST_F(EventFiles, BeginWithTheirVersion) {
  const EventFile file(scratch_.path() / "chief");
  const ReadEvents read = read_events(text_of(file.path()));
  ASSERT_THAT(read.events, SizeIs(1));
  EXPECT_EQ(field_of(read.events[0], 3).bytes, "brain.Event:2");
  EXPECT_EQ(field_of(field_of(read.events[0], 10).bytes, 1).bytes, "disttf");
}

TEST_F(EventFiles, OfOneDirectoryAndSecondHaveNamesInTheOrderInWhichTheyWereMade) {
  const EventFile first(scratch_.path());
  const EventFile second(scratch_.path());
  const EventFile third(scratch_.path());
  EXPECT_THAT(scratch_.names(),
              ElementsAre(first.path().filename().string(), second.path().filename().string(),
                          third.path().filename().string()));
}

TEST_F(EventFiles, CutAnywhereInTheirLastRecordsKeepWhatIsBeforeAndTheNextFileIsRead) {
  EventFile killed(scratch_.path());
  for (const std::uint64_t step : {1U, 2U, 3U}) {
    ASSERT_FALSE(killed.append(scalar_event(step)));
  }
  const std::string whole = text_of(killed.path());
  const std::size_t record = event_record(scalar_event(1)).size();
  EventFile next(scratch_.path());
  ASSERT_FALSE(next.append(session_start_event({.wall_time = 2, .step = 3})));
  ASSERT_FALSE(next.append(scalar_event(3)));
  EXPECT_THAT(steps_in(text_of(next.path())), ElementsAre(3, 3));
  for (std::size_t size = whole.size() - 2 * record; size <= whole.size(); ++size) {
    const ReadEvents read = read_events(whole.substr(0, size));
    EXPECT_FALSE(read.is_dead) << size;
    const std::size_t left = (size - (whole.size() - 2 * record)) / record;
    EXPECT_EQ(read.events.size(), 2 + left) << size;
  }
  EXPECT_GT(next.path().filename().string(), killed.path().filename().string());
}

TEST_F(EventFiles, WithAByteThatIsWrongAreDeadFromThereOn) {
  EventFile file(scratch_.path());
  ASSERT_FALSE(file.append(scalar_event(1)));
  std::string bytes = text_of(file.path());
  bytes[bytes.size() - 6] ^= 1;
  EXPECT_TRUE(read_events(bytes).is_dead);
  EXPECT_THAT(read_events(bytes).events, SizeIs(1));
}

// A disk with a limited amount of free space.
std::size_t room = 0;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): a function's
ssize_t write_while_there_is_room(int file, const void* bytes, std::size_t size) {
  const std::size_t part = std::min(room, size);
  if (part == 0) {
    errno = ENOSPC;
    return -1;
  }
  room -= part;
  return ::write(file, bytes, part);
}

TEST_F(EventFiles, OnADiskThatIsFullForAWhileAreWholeAndLackWhatItDidNotTake) {
  const std::size_t record = event_record(scalar_event(1)).size();
  for (std::size_t part = 0; part <= record; ++part) {
    room = 1000;
    EventFile file(scratch_.path(), &write_while_there_is_room);
    room = record + part;
    EXPECT_FALSE(file.append(scalar_event(1)));
    EXPECT_EQ(static_cast<bool>(file.append(scalar_event(2))), part < record);
    EXPECT_TRUE(file.append(scalar_event(3)));
    room = 1000;
    EXPECT_FALSE(file.append(scalar_event(4)));
    const std::string text = text_of(file.path());
    EXPECT_EQ(read_events(text).rest, 0U) << part;
    using Steps = std::vector<std::uint64_t>;
    EXPECT_EQ(steps_in(text), part == 0 ? Steps({1, 4}) : Steps({1, 2, 4})) << part;
  }
}

TEST_F(EventFiles, OnADiskThatIsFullFromTheBeginningStillBeginWithTheirVersion) {
  room = 5;
  EventFile file(scratch_.path(), &write_while_there_is_room);
  EXPECT_TRUE(file.append(scalar_event(1)));
  room = 1000;
  EXPECT_FALSE(file.append(scalar_event(2)));
  EXPECT_TRUE(has_field(read_events(text_of(file.path())).events.at(0), 3));
  EXPECT_THAT(steps_in(text_of(file.path())), ElementsAre(2));
}

TEST_F(EventFiles, ThatCannotBeMadeSayWhereAndWhy) {
  test::write(scratch_.path() / "chief", test::bytes_of("a file"));
  EXPECT_EQ(
      test::refusal_of([&] { const EventFile file(scratch_.path() / "chief"); }, scratch_.path()),
      "chief cannot be created: Not a directory");
}

}  // namespace
}  // namespace disttf::data
