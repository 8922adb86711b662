#include "storage/checkpoint/shell/shard_writer.h"

#include <gmock/gmock.h>

#include <future>
#include <new>

#include "tests/storage/checkpoint_fixture.h"

namespace disttf::roles::test {
namespace {

using testing::HasSubstr;

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
