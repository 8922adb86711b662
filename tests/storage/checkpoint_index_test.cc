#include "storage/checkpoint/core/checkpoint_index.h"

#include <gmock/gmock.h>

#include <future>
#include <new>

#include "data/checksums.h"
#include "run/outcome.h"
#include "storage/checkpoint/core/checkpoint_reader.h"
#include "storage/checkpoint/shell/shard_writer.h"
#include "tests/storage/checkpoint_fixture.h"
#include "tests/support/thrown.h"

namespace disttf::roles::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// ---- Pieces ----

std::vector<std::string> names_of(const std::vector<Piece>& pieces) {
  std::vector<std::string> names;
  for (const Piece& piece : pieces) names.push_back(piece.name);
  return names;
}

class CheckpointIndexTest : public CheckpointTest {
 protected:
  CheckpointIndexTest() {
    layout_ = {};
    layout_.add("sm_w", {2, 3});  // floats 0 to 5
    layout_.add("sm_b", {3});     // 16 to 18, 32 in all
  }
  const std::vector<std::string> momentum_{"momentum"};
};

TEST_F(CheckpointIndexTest, AFileOfEverythingHoldsTheVariablesByTheirNames) {
  const auto pieces = pieces_of(layout_, momentum_, {0, 32});
  EXPECT_THAT(names_of(pieces), ElementsAre("sm_w", "sm_b", "sm_w/momentum", "sm_b/momentum"));
  EXPECT_THAT(pieces[0].shape, ElementsAre(2U, 3U));
  EXPECT_EQ(pieces[2].tensor, 1U);
  EXPECT_EQ(pieces[3].range, (math::Range{16, 19}));
}

TEST_F(CheckpointIndexTest, WhatABorderCutsIsNamedByItsFloats) {
  EXPECT_THAT(names_of(pieces_of(layout_, {}, {0, 4})), ElementsAre("sm_w:0-4"));
  const auto pieces = pieces_of(layout_, momentum_, {4, 18});
  EXPECT_THAT(names_of(pieces),
              ElementsAre("sm_w:4-6", "sm_b:0-2", "sm_w/momentum:4-6", "sm_b/momentum:0-2"));
  EXPECT_THAT(pieces[0].shape, ElementsAre(2U));
  EXPECT_EQ(pieces[0].range, (math::Range{4, 6}));
}

TEST_F(CheckpointIndexTest, PaddingIsNoPiece) {
  EXPECT_TRUE(pieces_of(layout_, momentum_, {6, 16}).empty());
  EXPECT_TRUE(pieces_of(layout_, momentum_, {19, 32}).empty());
  EXPECT_TRUE(pieces_of(layout_, momentum_, {3, 3}).empty());
}

// ---- Names ----

TEST(CheckpointName, IsReadOnlyAsItIsWritten) {
  const CheckpointName name{.step = 500, .revision = 3};
  EXPECT_EQ(to_string(name), "checkpoint-00000500-3");
  EXPECT_EQ(checkpoint_name_from("checkpoint-00000500-3"), name);
  EXPECT_EQ(checkpoint_name_from("checkpoint-1234567890"), (CheckpointName{1234567890, 1}));
  for (const char* text :
       {"", "checkpoint-", "checkpoint-500", "checkpoint-00000500-1", "checkpoint-00000500-0",
        "checkpoint-00000500-02", "checkpoint-00000500-", "checkpoint-000000500",
        "checkpoint-00000500.partial-0000000000000001", "checkpoint-+0000500",
        "checkpoint-99999999999999999999", "checkpoint-18446744073709551615", "model"}) {
    EXPECT_EQ(checkpoint_name_from(text), std::nullopt) << text;
  }
}

TEST(CheckpointName, WhileItIsWrittenItHasAnother) {
  const SaveId id{.step = 500, .attempt = 0xabc};
  EXPECT_EQ(partial_name(id), "checkpoint-00000500.partial-0000000000000abc");
  const auto read = partial_name_from(partial_name(id));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->step, 500U);
  EXPECT_EQ(read->attempt, 0xabcU);
  for (const char* text : {"checkpoint-00000500", "checkpoint-00000500.partial-abc",
                           "checkpoint-00000500.partial-000000000000zabc",
                           "checkpoint-00000500-2.partial-0000000000000abc"}) {
    EXPECT_FALSE(partial_name_from(text)) << text;
  }
}

// ---- Bytes ----

// docs/checkpoint_format.md quotes these bytes.
constexpr const char* kGolden = R"({
 "index_sha256": "84018ea10d9ec96dba4251151541a54bdc3aacb080f17eebe30b26ea549900e3",
 "disttf": {
  "configuration": {
   "model": "softmax",
   "optimizer": "momentum",
   "seed": 7
  },
  "files": [
   {
    "header_sha256": "fc3b9584d06454c4c0179bf938509217d183ddc47d9e349d4c947df7d625a463",
    "name": "model-00001-of-00001.safetensors",
    "range": [
     0,
     32
    ],
    "size_bytes": 384
   }
  ],
  "format": 1,
  "optimizer": [
   "momentum"
  ],
  "seed": 7,
  "sha256": {
   "sm_b": "8a31a40ecac0ceb4d87b30bd156ca7a547e8e33dc071454b765fbc777d1c34a1",
   "sm_b/momentum": "15ec7bf0b50732b49f8228e07d24365338f9e3ab994b00af08e5a3bffe55fd8b",
   "sm_w": "03b8e98a10217e51d8ecef7919de69ba80c52b25ee49ce0886ecfe0ddeacd4ac",
   "sm_w/momentum": "90ba88e2e295f2a5205122dcf0b0d15b5e9bd0ee828ef8e3e4ddf3c6bc53a320"
  },
  "step": 5,
  "variables": [
   {
    "name": "sm_w",
    "shape": [
     2,
     3
    ]
   },
   {
    "name": "sm_b",
    "shape": [
     3
    ]
   }
  ]
 },
 "metadata": {
  "total_size": 72
 },
 "weight_map": {
  "sm_b": "model-00001-of-00001.safetensors",
  "sm_b/momentum": "model-00001-of-00001.safetensors",
  "sm_w": "model-00001-of-00001.safetensors",
  "sm_w/momentum": "model-00001-of-00001.safetensors"
 }
}
)";

TEST_F(CheckpointIndexTest, TheIndexOfASmallCheckpointIsThisOne) {
  TrainingState state;
  state.step = 5;
  state.parameters = math::AlignedVector(layout_.size());
  state.optimizer.push_back({.name = "momentum", .values = math::AlignedVector(layout_.size())});
  for (std::size_t i = 0; i < 6; ++i) {
    state.parameters.span()[i] = 0.5F * static_cast<float>(i);
    state.optimizer[0].values.span()[i] = -1.0F;
  }
  for (std::size_t i = 16; i < 19; ++i) state.parameters.span()[i] = 1.0F;
  checkpoints_.save(1, state, layout_, R"({"model":"softmax","optimizer":"momentum","seed":7})", 0);
  const auto bytes = data::test::read(file("checkpoint-00000005", kIndex));
  EXPECT_EQ(std::string(bytes.begin(), bytes.end()), kGolden);
}

TEST_F(CheckpointIndexTest, ReadsBackWhatItWrote) {
  const CheckpointIndex index = parse_index(kGolden, "index");
  EXPECT_EQ(index.step, 5U);
  EXPECT_EQ(index.config_json, R"({"model":"softmax","optimizer":"momentum","seed":7})");
  EXPECT_EQ(index.optimizer, momentum_);
  ASSERT_EQ(index.files.size(), 1U);
  EXPECT_EQ(index.files[0].sha256.size(), 4U);
  EXPECT_EQ(encode_index(index), kGolden);
}

TEST_F(CheckpointIndexTest, HasWhatMayEndARunEarly) {
  CheckpointIndex index = parse_index(kGolden, "index");
  EXPECT_EQ(index.early_stop_state, EarlyStopState{}) << "of a run that has none";
  index.early_stop_state = {.best = {.step = 3, .loss = 0.1}, .step = 5};
  EXPECT_EQ(parse_index(encode_index(index), "index").early_stop_state, index.early_stop_state);
  index.early_stop_state.step = 9;  // the run has continued from this state
  EXPECT_EQ(parse_index(encode_index(index), "index").early_stop_state.step, 0U);
}

// ---- written by other programs, with a correct checksum ----

std::string sign(std::string text) {
  const auto at = text.find("\": \"") + 4;
  text.replace(at, 64, 64, '0');
  return text.replace(at, 64, data::sha256_hex(std::as_bytes(std::span(text))));
}

// Returns the golden index with one change and a correct checksum.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = kGolden;
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return sign(text.replace(at, from.size(), to));
}

TEST(CheckpointIndexFromOutside, IsAcceptedWhereItIsRight) {
  EXPECT_EQ(parse_index(changed("\"step\": 5", "\"step\": 6"), "index").step, 6U);
  EXPECT_EQ(parse_index(changed("\"metadata\"", "\"anything\""), "index").step, 5U);
}

TEST(CheckpointIndexFromOutside, IsRefusedWhereItIsNot) {
  const std::string nested = std::string(1000, '[') + std::string(1000, ']');
  const std::vector<std::pair<std::string, std::string>> changes = {
      {"\"step\": 5", "\"step\": -5"},
      {"\"step\": 5", "\"step\": 18446744073709551615"},
      {"\"step\": 5", "\"steps\": 5"},
      {"\"seed\": 7\n  }", "\"seed\": " + nested + "}"},
      {"model-00001-of", "../../model-of"},
      {"model-00001-of", "model\\u001b[2J-of"},
      {"\"size_bytes\": 384", "\"size_bytes\": 72"},
      {"\"size_bytes\": 384", "\"size_bytes\": \"384\""},
      {"\n     0,\n     32", "0, 16"},
      {"\n     0,\n     32", "0, 48"},
      {"\n     0,\n     32", "16, 32"},
      {"\n     0,\n     32", "0"},
      {"\n     2,\n     3", "2, 0"},
      {"\n     2,\n     3", "4294967296, 4294967296"},
      {"\n     2,\n     3", "2147483648, 2"},
      {"\n     2,\n     3", "2, 1000"},
      {"\"name\": \"sm_b\"", "\"name\": \"sm/b\""},
      {"\"name\": \"sm_b\"", "\"name\": \"\""},
      {"\"name\": \"sm_b\"", "\"name\": 7"},
      {"\"sm_w\": \"03b8", "\"sm_w\": \"03B8"},
      {"\"sm_w\": \"03b8", "\"sm_v\": \"03b8"},
      {"\"momentum\"\n", "7\n"},
      {"\"step\": 5", "\"step\": 5, \"ended\": 1"},
      {"\"step\": 5", "\"step\": 5, \"best_evaluation\": {\"step\": 5}"},
      {"\"step\": 5", "\"step\": 5, \"best_evaluation\": {\"step\": -5, \"loss\": 1}"},
      {"\"step\": 5", "\"step\": 5, \"best_evaluation\": {\"step\": 5, \"loss\": \"1\"}"},
      {"\"disttf\"", "\"dist\""},
      {"\"weight_map\": {", "\"weight_map\": "}};
  for (const auto& [from, to] : changes) {
    EXPECT_THROW(static_cast<void>(parse_index(changed(from, to), "index")), DamagedCheckpoint)
        << from << " -> " << to.substr(0, 80);
  }
}

// A reader's memory is bounded by the files on the disk, so none may count for two ranges.
TEST(CheckpointIndexFromOutside, HasAFileOfItsOwnForEachRange) {
  const std::string file = R"({"header_sha256":
    "fc3b9584d06454c4c0179bf938509217d183ddc47d9e349d4c947df7d625a463", "name": "model-)";
  const std::string hash =
      R"(": "03b8e98a10217e51d8ecef7919de69ba80c52b25ee49ce0886ecfe0ddeacd4ac")";
  std::string text = kGolden;
  const auto begin = text.find("   {\n    \"header_sha256\"");
  const auto end = text.find("\n  ],\n  \"format\"");
  const auto with_second = [&](const std::string& name) {
    std::string both = text;
    both.replace(begin, end - begin,
                 file + R"(1", "range": [0, 4], "size_bytes": 384}, )" + file + name +
                     R"(", "range": [4, 32], "size_bytes": 384})");
    for (const char* piece : {"sm_w:0-4", "sm_w:4-6", "sm_w:0-4/momentum", "sm_w:4-6/momentum",
                              "sm_w/momentum:0-4", "sm_w/momentum:4-6"}) {
      both.replace(both.find("\"sm_b\": "), 0, "\"" + std::string(piece) + hash + ", ");
    }
    return sign(both);
  };
  EXPECT_EQ(parse_index(with_second("2"), "index").files.size(), 2U);
  EXPECT_THROW(static_cast<void>(parse_index(with_second("1"), "index")), DamagedCheckpoint);
}

TEST(CheckpointIndexFromOutside, OfALaterFormatIsNotCalledDamaged) {
  const auto failure = thrown<Failure>(
      [&] { return parse_index(changed("\"format\": 1", "\"format\": 2"), "x/index.json"); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->exit_code(), kUsage);
  EXPECT_THAT(failure->what(),
              HasSubstr("x/index.json has format 2, this version of disttf reads 1"));
}

TEST(CheckpointIndexFromOutside, OfAnotherUserIsNamed) {
  for (const char* text : {"", "{}", "{\"metadata\": {}, \"weight_map\": {}}",
                           "{\n \"index_sha256\": \"", "{\n \"index_sha256\": \"84018ea1"}) {
    EXPECT_THROW(static_cast<void>(parse_index(text, "index")), DamagedCheckpoint) << text;
  }
}

class ShardWriterTest : public CheckpointTest {
 protected:
  // The request that a ps with this range of the state gets.
  [[nodiscard]] ShardWriteRequest request(const TrainingState& state, std::size_t shard,
                                          std::size_t shards, math::Range range) const {
    auto snapshot = std::make_shared<SnapshotShard>();
    snapshot->step = state.step;
    snapshot->values = math::AlignedVector((1 + state.optimizer.size()) * range.size());
    const ShardView shown = view(state, range);
    float* to = std::ranges::copy(shown.parameters, snapshot->values.data()).out;
    ShardWriteRequest request{.id = {.step = state.step, .attempt = 1},
                              .shard = shard,
                              .shards = shards,
                              .snapshot = nullptr,
                              .range = range,
                              .optimizer = {},
                              .layout = layout_};
    for (const ShardView::Tensor& tensor : shown.optimizer) {
      to = std::ranges::copy(tensor.values, to).out;
      request.optimizer.emplace_back(tensor.name);
    }
    request.snapshot = std::move(snapshot);
    return request;
  }

  // Starts a write and waits for its result.
  static ShardWriter::Result write(ShardWriter& writer, ShardWriteRequest request) {
    std::promise<ShardWriter::Result> promise;
    const auto why_not = writer.start(std::move(request), [&promise](ShardWriter::Result result) {
      promise.set_value(std::move(result));
    });
    return why_not ? ShardWriter::Result(*why_not) : promise.get_future().get();
  }
};

TEST_F(ShardWriterTest, WhatAllPsHaveWrittenIsTheState) {
  const std::vector<math::Range> ranges = {{0, 35}, {35, 70}, {70, 70}, {70, 112}};
  std::vector<ShardFile> files;
  for (std::size_t shard = 0; shard < ranges.size(); ++shard) {
    ShardWriter writer(scratch_.path());
    files.push_back(
        std::get<ShardFile>(write(writer, request(state(3), shard, ranges.size(), ranges[shard]))));
  }
  checkpoints_.commit_shards({.step = 3, .attempt = 1}, files, layout_, kConfig, 0);
  const auto loaded = load();
  ASSERT_TRUE(loaded);
  expect_bit_identical(loaded->state, state(3));
}

TEST_F(ShardWriterTest, WritesOneAfterTheOther) {
  ShardWriter writer(scratch_.path());
  for (std::uint64_t step = 1; step <= 3; ++step) {
    const auto file = std::get<ShardFile>(write(writer, request(state(step), 0, 1, {0, 112})));
    checkpoints_.commit_shards({.step = step, .attempt = 1}, std::span(&file, 1), layout_, kConfig,
                               0);
    EXPECT_EQ(loaded_step(), step);
  }
}

TEST_F(ShardWriterTest, WithoutADirectoryItNamesTheFlag) {
  ShardWriter writer("");
  const auto result = write(writer, request(state(3), 0, 1, {0, 112}));
  EXPECT_THAT(std::get<std::string>(result), HasSubstr("started without --train_dir"));
}

TEST_F(ShardWriterTest, ADirectoryThatCannotBeIsASentenceWithItsPath) {
  data::test::write(scratch_.path() / "file", {});
  ShardWriter writer(scratch_.path() / "file" / "train");
  const auto result = write(writer, request(state(3), 0, 1, {0, 112}));
  EXPECT_THAT(std::get<std::string>(result),
              AllOf(HasSubstr("cannot create"), HasSubstr("file/train")));
}

TEST_F(ShardWriterTest, AResultThatDoesNotFitInMemoryEndsNothing) {
  ShardWriter writer(scratch_.path());
  ASSERT_EQ(writer.start(request(state(3), 0, 1, {0, 112}),
                         [](const ShardWriter::Result&) { throw std::bad_alloc(); }),
            std::nullopt);
  // The next write waits for the thread of the first.
  std::optional<std::string> why_not;
  std::promise<ShardWriter::Result> promise;
  do {
    why_not = writer.start(
        request(state(4), 0, 1, {0, 112}),
        [&promise](ShardWriter::Result result) { promise.set_value(std::move(result)); });
  } while (why_not == "it is still writing its range of step 3");
  ASSERT_EQ(why_not, std::nullopt);
  EXPECT_TRUE(std::holds_alternative<ShardFile>(promise.get_future().get()));
}

// A second request would have to wait for the disk, so it is rejected. A small file may be on the
// disk before the second request, so the test tries larger and larger ones.
TEST_F(ShardWriterTest, TakesOneRequestAtATime) {
  constexpr std::size_t kLargest = std::size_t{1} << 26U;
  for (std::size_t floats = std::size_t{1} << 20U; floats <= kLargest; floats *= 2) {
    layout_ = {};
    layout_.add("large", {floats});
    TrainingState large;
    large.step = 7;
    large.parameters = math::AlignedVector(floats);
    const ShardWriteRequest wanted = request(large, 0, 1, {0, floats});
    ShardWriter writer(scratch_.path());
    ASSERT_EQ(writer.start(wanted, [](const ShardWriter::Result&) {}), std::nullopt);
    if (const auto why_not = writer.start(wanted, [](const ShardWriter::Result&) {})) {
      EXPECT_EQ(*why_not, "it is still writing its range of step 7");
      return;
    }
  }
  FAIL() << "two orders were taken at once";
}

}  // namespace
}  // namespace disttf::roles::test
