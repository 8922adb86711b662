#include "data/tensorboard/events.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <string>
#include <vector>

#include "data/checksums.h"
#include "data/own/image_file.h"
#include "data/tensorboard/event_file.h"
#include "data/tensorboard/projector.h"
#include "tests/data/scratch.h"
#include "tests/data/tensorboard/event_reader.h"

namespace disttf::data {
namespace {

std::string hex(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    text += kDigits[static_cast<unsigned char>(byte) >> 4U];
    text += kDigits[static_cast<unsigned char>(byte) & 15U];
  }
  return text;
}

// All expected bytes below were produced by protobuf's own classes from TensorBoard's message
// definitions.
TEST(Events, BeginWithVersionTwo) {
  EXPECT_EQ(hex(file_version_event(1'600'000'000.0)),
            "090000000084d7d7411a0d627261696e2e4576656e743a3252080a06646973747466");
}

TEST(Events, OfTheStartOfASessionHaveItsFirstStep) {
  EXPECT_EQ(hex(session_start_event({.wall_time = 1.5, .step = 300})),
            "09000000000000f83f10ac023a020801");
}

constexpr EventTime kFirst{.wall_time = 1.5, .step = 1};

TEST(Events, OfAScalarHaveATensorWithoutDimensions) {
  SummaryEvent event;
  event.add_scalar("loss", 0.5);
  EXPECT_EQ(hex(event.event(kFirst)),
            "09000000000000f83f10012a230a210a046c6f7373420a080112002a040000003f"
            "4a0d0a090a077363616c6172732001");
}

TEST(Events, OfAHistogramHaveARowForEachBucket) {
  SummaryEvent event;
  event.add_histogram("w", std::array{HistogramBucket{.left = 0, .right = 1, .count = 2}});
  EXPECT_EQ(hex(event.event(kFirst)),
            "09000000000000f83f10012a3f0a3d0a0177422608021208120208011202080332180000000000000000"
            "000000000000f03f00000000000000404a100a0c0a0a686973746f6772616d732002");
}

TEST(Events, OfImagesHaveTheirSizeBeforeThem) {
  SummaryEvent event;
  event.add_images("i", 28, 14, std::array<std::string, 1>{"PNG"});
  EXPECT_EQ(hex(event.event(kFirst)),
            "09000000000000f83f10012a2a0a280a01694215080712041202080342023238420231344203504e474a0c"
            "0a080a06696d616765732003");
}

TEST(Events, OfTextHaveIt) {
  SummaryEvent event;
  event.add_text("t", "word");
  EXPECT_EQ(hex(event.event(kFirst)),
            "09000000000000f83f10012a1d0a1b0a0174420a080712004204776f72644a0a0a060a04746578742002");
}

TEST(Graph, HasDevicesShapesAndAttributesOfItsNodes) {
  const std::array nodes = {GraphNode{.name = "w",
                                      .op = "VariableV2",
                                      .inputs = {"x"},
                                      .device = "/job:ps/task:1",
                                      .shape = {kAnySize, 3},
                                      .attributes = {{"parameters", "[0, 3)"}}}};
  EXPECT_EQ(hex(graph_def(nodes)),
            "0a630a0177120a5661726961626c6556321a0178220e2f6a6f623a70732f7461736b3a312a270a0e5f6f75"
            "747075745f73686170657312150a133a11120b08ffffffffffffffffff01120208032a160a0a7061726"
            "16d6574657273120812065b302c20332922020816");
}

const std::array kSettings = {HyperParameter{.name = "a", .value = true},
                              HyperParameter{.name = "b", .value = 0.5},
                              HyperParameter{.name = "c", .value = "w"}};

TEST(HyperParameters, OfAStartHaveNamesAndValues) {
  EXPECT_EQ(hex(session_start(1.5, kSettings).bytes()),
            "1a2c0a070a0161120220010a0e0a0162120911000000000000e03f0a080a016312031a0177290000000000"
            "00f83f");
}

TEST(HyperParameters, OfAnExperimentHaveTypesAndMetrics) {
  const std::array metrics = {HyperMetric{.tag = "t", .display_name = "A"}};
  EXPECT_EQ(hex(experiment(1.5, kSettings, metrics).bytes()),
            "122a19000000000000f83f22050a0161200222050a0162200322050a016320012a0a0a031201741a014128"
            "02");
}

TEST(HyperParameters, OfAnEndSayHowItWas) {
  EXPECT_EQ(hex(session_end(2.5, true).bytes()), "220b0801110000000000000440");
  EXPECT_EQ(hex(session_end(2.5, false).bytes()), "220b0802110000000000000440");
}

TEST(Histogram, CountsEachFiniteValueOnceFromTheLeastToTheGreatest) {
  std::vector<float> values = {-1,
                               1,
                               0,
                               0.5F,
                               std::numeric_limits<float>::infinity(),
                               std::numeric_limits<float>::quiet_NaN()};
  const std::vector<HistogramBucket> buckets = histogram(values);
  ASSERT_EQ(buckets.size(), kHistogramBuckets);
  EXPECT_EQ(buckets.front().left, -1);
  EXPECT_EQ(buckets.back().right, 1);
  double count = 0;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    EXPECT_LT(buckets[i].left, buckets[i].right);
    if (i > 0) {
      EXPECT_EQ(buckets[i].left, buckets[i - 1].right);
    }
    count += buckets[i].count;
  }
  EXPECT_EQ(count, 4);
  EXPECT_EQ(buckets.front().count, 1);
  EXPECT_EQ(buckets[15].count, 1);  // 0 is the beginning of the second half
  EXPECT_EQ(buckets.back().count, 1);
}

TEST(Histogram, OfEqualValuesHasThemAllInItsLastBucket) {
  const std::vector<HistogramBucket> buckets = histogram(std::array{2.0F, 2.0F, 2.0F});
  ASSERT_EQ(buckets.size(), kHistogramBuckets);
  EXPECT_EQ(buckets.back().count, 3);
  EXPECT_EQ(buckets.front().count, 0);
  EXPECT_EQ(buckets.back().left, 2);
  EXPECT_EQ(buckets.back().right, 2);
}

TEST(Histogram, OfNothingThatIsANumberHasNoBuckets) {
  EXPECT_TRUE(histogram({}).empty());
  EXPECT_TRUE(histogram(std::array{std::numeric_limits<float>::quiet_NaN()}).empty());
}

TEST(Png, IsTheImageThatItWasMadeOf) {
  for (const std::size_t channels : {1U, 3U}) {
    std::vector<std::uint8_t> pixels;
    for (std::size_t i = 0; i < 5 * 7 * channels; ++i) {
      pixels.push_back(static_cast<std::uint8_t>(37 * i));
    }
    const std::string file = encode_png(pixels, 5, 7, channels);
    const std::vector<std::uint8_t> bytes(file.begin(), file.end());
    const ImageSize size = image_size(bytes, "it");
    EXPECT_EQ(size.height, 5U);
    EXPECT_EQ(size.width, 7U);
    EXPECT_EQ(size.is_grey, channels == 1);
    std::vector<std::uint8_t> decoded(pixels.size());
    decode_image(bytes, "it", channels, decoded);
    EXPECT_EQ(decoded, pixels);
  }
}

TEST(Projector, HasALineForEachPointAndOneThatNamesTheColumns) {
  EXPECT_EQ(projector_points(std::array{0.5F, -1.0F, 0.1F, 1e30F}, 2), "0.5\t-1\n0.1\t1e+30\n");
  EXPECT_EQ(
      projector_labels(std::array{ProjectorLabel{.label = "T-shirt/top", .answer = "a\tb\n"}}),
      "label\tanswer\nT-shirt/top\ta b \n");
  EXPECT_EQ(projector_config("test images"),
            "embeddings {\n  tensor_name: \"test images\"\n  tensor_path: \"embeddings.tsv\"\n"
            "  metadata_path: \"labels.tsv\"\n}\n");
}

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
