#include "data/records.h"

#include <gtest/gtest.h>

#include <string>

#include "data/error.h"
#include "tests/data/scratch.h"

namespace disttf::data {
namespace {

using test::Bytes;

constexpr ImageShape kTiny{.height = 1, .width = 2, .channels = 3};

struct ParsedRecords {
  std::error_code error;
  std::string detail;
  Bytes images{99};
  Bytes labels{98};
};

ParsedRecords records_of(const Bytes& bytes, const ImageShape& shape = kTiny) {
  ParsedRecords result;
  result.error = parse_records(bytes, shape, 10, result.images, result.labels, result.detail);
  return result;
}

// The planes of two pixels, red, green and blue, are 11 12, 21 22, 31 32.
TEST(Records, PutChannelsLastBehindWhatThereIs) {
  const ParsedRecords parsed = records_of({3, 11, 12, 21, 22, 31, 32, 9, 41, 42, 51, 52, 61, 62});
  ASSERT_FALSE(parsed.error) << parsed.detail;
  EXPECT_EQ(parsed.images, (Bytes{99, 11, 21, 31, 12, 22, 32, 41, 51, 61, 42, 52, 62}));
  EXPECT_EQ(parsed.labels, (Bytes{98, 3, 9}));
}

TEST(Records, KeepTheOrderOfRows) {
  const ParsedRecords parsed =
      records_of({0, 1, 2, 3, 4}, {.height = 2, .width = 2, .channels = 1});
  ASSERT_FALSE(parsed.error) << parsed.detail;
  EXPECT_EQ(parsed.images, (Bytes{99, 1, 2, 3, 4}));
}

TEST(Records, RefuseALabelThatIsNoClass) {
  Bytes bytes(14);
  bytes[7] = 10;
  const ParsedRecords parsed = records_of(bytes);
  EXPECT_EQ(parsed.error, DataError::kBadLabel);
  EXPECT_EQ(parsed.detail, "expected labels 0 to 9, found 10 in row 1");
  EXPECT_EQ(parsed.images, Bytes{99});
  EXPECT_EQ(parsed.labels, Bytes{98});
}

TEST(Records, RefuseAPartOfOne) {
  const ParsedRecords parsed = records_of(Bytes(13));
  EXPECT_EQ(parsed.error, DataError::kBadRecords);
  EXPECT_EQ(parsed.detail, "expected records of 7 bytes, found 6 bytes after the last one");
  EXPECT_EQ(parsed.images, Bytes{99});
}

}  // namespace
}  // namespace disttf::data
