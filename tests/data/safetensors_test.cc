#include "data/safetensors.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "data/error.h"
#include "data/file.h"
#include "tests/data/scratch.h"

namespace disttf::data {
namespace {

using test::Bytes;

// Returns a file with this JSON and `data_bytes` zero bytes after it.
Bytes file_of(const std::string& json, std::size_t data_bytes) {
  Bytes bytes(kSafetensorsSizeBytes);
  bytes[0] = static_cast<std::uint8_t>(json.size());
  bytes[1] = static_cast<std::uint8_t>(json.size() >> 8U);
  bytes.insert(bytes.end(), json.begin(), json.end());
  bytes.resize(bytes.size() + data_bytes);
  return bytes;
}

struct HeaderResult {
  std::error_code error;
  std::string detail;
};

HeaderResult parse_header(const Bytes& bytes) {
  SafetensorsHeader header;
  header.size_bytes = 77;
  HeaderResult result;
  result.error = parse_safetensors(bytes, bytes.size(), header, result.detail);
  EXPECT_TRUE(!result.error || header.size_bytes == 77) << "the output was touched";
  EXPECT_EQ(static_cast<bool>(result.error), !result.detail.empty());
  return result;
}

HeaderResult parse_header(const std::string& json, std::size_t data_bytes) {
  return parse_header(file_of(json, data_bytes));
}

const std::string kWeights = R"("w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]})";

TEST(Safetensors, BytesOfASmallFileAreTheseOnes) {
  const std::array<float, 3> values{1.0F, -2.0F, 0.5F};
  const std::array tensors{
      SafetensorsTensor{.name = "w", .shape = {2, 1}, .values = std::span(values).first(2)},
      SafetensorsTensor{.name = "b", .shape = {1}, .values = std::span(values).last(1)}};
  const test::ScratchDirectory scratch;
  const auto path = scratch.path() / "x.safetensors";
  const Bytes header = encode_safetensors_header({{"step", "5"}}, tensors);
  write_file_atomically(path, safetensors_parts(header, tensors));

  // Written by hand: names in alphabetical order, tensors in the given order.
  const std::string json = R"({"__metadata__":{"step":"5"},)"
                           R"("b":{"data_offsets":[8,12],"dtype":"F32","shape":[1]},)"
                           R"("w":{"data_offsets":[0,8],"dtype":"F32","shape":[2,1]}})";
  ASSERT_EQ(json.size(), 138U);
  Bytes expected{144, 0, 0, 0, 0, 0, 0, 0};
  expected.insert(expected.end(), json.begin(), json.end());
  const Bytes rest{' ', ' ', ' ', ' ', ' ', ' ', 0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0, 0, 0, 0, 0x3f};
  expected.insert(expected.end(), rest.begin(), rest.end());
  EXPECT_EQ(test::read(path), expected);
}

TEST(Safetensors, ReadsBackWhatWasWritten) {
  const std::array<float, 7> values{};
  const std::array tensors{
      SafetensorsTensor{.name = "w", .shape = {2, 3}, .values = std::span(values).first(6)},
      SafetensorsTensor{.name = "b", .shape = {}, .values = std::span(values).last(1)}};
  const SafetensorsMetadata metadata{{"a", "1"}, {"b", "\"[{"}};
  const Bytes bytes = encode_safetensors_header(metadata, tensors);
  SafetensorsHeader header;
  std::string detail;
  ASSERT_FALSE(parse_safetensors(bytes, bytes.size() + 28, header, detail)) << detail;
  EXPECT_EQ(header.metadata, metadata);
  EXPECT_EQ(header.size_bytes, bytes.size());
  EXPECT_EQ(header.size_bytes % 8, 0U);
  ASSERT_EQ(header.tensors.size(), 2U);
  EXPECT_EQ(header.tensors[0].name, "w");
  EXPECT_EQ(header.tensors[0].shape, (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ(header.tensors[0].begin_bytes, bytes.size());
  EXPECT_EQ(header.tensors[1].begin_bytes, bytes.size() + 24);
  EXPECT_EQ(header.tensors[1].size_bytes, 4U);
}

TEST(Safetensors, AcceptsAFileWithoutTensors) { EXPECT_FALSE(parse_header("{}", 0).error); }

TEST(Safetensors, AcceptsSpacesBehindTheHeader) {
  EXPECT_FALSE(parse_header("{" + kWeights + "}    ", 24).error);
}

TEST(Safetensors, RefusesEveryTruncation) {
  const Bytes whole = file_of("{" + kWeights + "}", 24);
  ASSERT_FALSE(parse_header(whole).error);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const HeaderResult result =
        parse_header(Bytes(whole.begin(), whole.begin() + static_cast<int>(size)));
    EXPECT_EQ(result.error, DataError::kSafetensorsTruncated) << size;
  }
}

TEST(Safetensors, RefusesBytesBehindTheLastTensor) {
  const HeaderResult result = parse_header("{" + kWeights + "}", 25);
  EXPECT_EQ(result.error, DataError::kSafetensorsBadOffsets);
  EXPECT_EQ(result.detail, "expected 24 bytes of tensors, found 25");
}

TEST(Safetensors, RefusesHolesAndOverlaps) {
  const auto second_at = [](int begin) {
    return "{" + kWeights + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[)" +
           std::to_string(begin) + "," + std::to_string(begin + 4) + "]}}";
  };
  EXPECT_FALSE(parse_header(second_at(24), 28).error);
  for (const int begin : {0, 4, 20, 23, 25, 28}) {
    EXPECT_EQ(parse_header(second_at(begin), 28).error, DataError::kSafetensorsBadOffsets) << begin;
  }
}

TEST(Safetensors, RefusesShapesThatDoNotFitTheirBytes) {
  for (const char* shape : {"[]", "[5]", "[7]", "[0]", "[4294967295,4294967295,4294967295]",
                            "[4611686018427387904,4]"}) {
    const std::string json =
        R"({"w":{"dtype":"F32","shape":)" + std::string(shape) + R"(,"data_offsets":[0,24]}})";
    EXPECT_EQ(parse_header(json, 24).error, DataError::kSafetensorsBadOffsets) << shape;
  }
}

TEST(Safetensors, RefusesOffsetsThatWrapAround) {
  EXPECT_EQ(parse_header(R"({"w":{"dtype":"F32","shape":[3],)"
                         R"("data_offsets":[18446744073709551608,4]}})",
                         4)
                .error,
            DataError::kSafetensorsBadOffsets);
}

TEST(Safetensors, NamesATensorOfAnotherType) {
  const HeaderResult result =
      parse_header(R"({"half\n":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}})", 4);
  EXPECT_EQ(result.error, DataError::kSafetensorsBadType);
  EXPECT_EQ(result.detail, "expected tensors of type F32, found tensor \"half?\" of type \"F16\"");
}

TEST(Safetensors, RefusesWhatIsNoHeader) {
  const std::string nested = R"({"w":)" + std::string(1000, '[') + std::string(1000, ']') + "}";
  for (const std::string& json :
       {std::string("[]"), std::string(" {}"), std::string("{"), std::string("{}x"),
        std::string("null"), std::string("{\"\xff\":1}"), nested, std::string(R"({"w":1})"),
        std::string(R"({"__metadata__":{"a":1}})"),
        std::string(R"({"w":{"dtype":"F32","shape":[1]}})"),
        std::string(R"({"w":{"dtype":32,"shape":[1],"data_offsets":[0,4]}})"),
        std::string(R"({"w":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})"),
        std::string(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}})"),
        std::string(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0.0,4]}})")}) {
    EXPECT_EQ(parse_header(json, 4).error, DataError::kSafetensorsBadHeader) << json;
  }
}

TEST(Safetensors, RefusesAHeaderThatWouldTakeAllMemory) {
  Bytes bytes(64);
  bytes[7] = 0x7f;
  SafetensorsHeader header;
  std::string detail;
  EXPECT_EQ(parse_safetensors(bytes, UINT64_MAX, header, detail), DataError::kSafetensorsBadHeader);
  EXPECT_EQ(detail,
            "expected a header of at most 100000000 bytes, found 9151314442816847872 bytes");
}

}  // namespace
}  // namespace disttf::data
