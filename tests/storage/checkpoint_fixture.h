// A small model, its states, and a directory for their checkpoints.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "data/posix_file_system.h"
#include "storage/checkpoint/core/checkpoint_store.h"
#include "tests/data/scratch.h"

namespace disttf::roles::test {

inline constexpr const char* kConfig = R"({"optimizer":"adam","seed":7})";

class CheckpointTest : public testing::Test {
 protected:
  CheckpointTest() {
    layout_.add("hid_w", {5, 7});  // floats 0 to 34
    layout_.add("hid_b", {7});     // 48 to 54
    layout_.add("sm_w", {7, 3});   // 64 to 84
    layout_.add("sm_b", {3});      // 96 to 98, 112 in all
  }

  // Every value has different bits, NaN, infinity, -0 and subnormals included. The padding is as in
  // a run.
  [[nodiscard]] TrainingState state(std::uint64_t step,
                                    const std::vector<std::string>& optimizer = {"m", "v"}) const {
    TrainingState state;
    state.step = step;
    state.parameters = values(static_cast<std::uint32_t>(step));
    for (const std::string& name : optimizer) {
      const auto seed = static_cast<std::uint32_t>(step + 1000 * (1 + state.optimizer.size()));
      state.optimizer.push_back({.name = name, .values = values(seed)});
    }
    return state;
  }

  void save(std::uint64_t step, std::size_t keep = 0) {
    checkpoints_.save(++attempts_, state(step), layout_, kConfig, keep);
  }

  // As `ranges.size()` ps write it.
  void save_shards(const TrainingState& state, const std::vector<math::Range>& ranges) {
    const SaveId id{.step = state.step, .attempt = 1};
    checkpoints_.commit_shards(id, write_shards(id, state, ranges), layout_, kConfig, 0);
  }

  [[nodiscard]] std::vector<ShardFile> write_shards(const SaveId& id, const TrainingState& state,
                                                    const std::vector<math::Range>& ranges) const {
    std::vector<ShardFile> files;
    for (std::size_t ps = 0; ps < ranges.size(); ++ps) {
      files.push_back(
          checkpoints_.write_shard(id, ps, ranges.size(), view(state, ranges[ps]), layout_));
    }
    return files;
  }

  [[nodiscard]] static ShardView view(const TrainingState& state, math::Range range) {
    const auto part = [&range](const math::AlignedVector& whole) {
      return whole.span().subspan(range.begin, range.size());
    };
    ShardView view{.range = range, .parameters = part(state.parameters), .optimizer = {}};
    for (const auto& tensor : state.optimizer) {
      view.optimizer.push_back({.name = tensor.name, .values = part(tensor.values)});
    }
    return view;
  }

  // Returns the newest checkpoint. Appends warnings to warnings_.
  [[nodiscard]] std::optional<LoadedCheckpoint> load() {
    warnings_.clear();
    return checkpoints_.load_newest(
        layout_, [this](const std::string& sentence) { warnings_.push_back(sentence); });
  }

  // Returns the step of the newest checkpoint; 0: none.
  [[nodiscard]] std::uint64_t loaded_step() {
    const auto loaded = load();
    return loaded ? loaded->state.step : 0;
  }

  [[nodiscard]] std::filesystem::path file(std::string_view checkpoint,
                                           std::string_view name) const {
    return scratch_.path() / checkpoint / name;
  }

  [[nodiscard]] static std::vector<std::uint32_t> bits(const math::AlignedVector& values) {
    std::vector<std::uint32_t> bits;
    for (const float value : values.span()) bits.push_back(std::bit_cast<std::uint32_t>(value));
    return bits;
  }

  static void expect_bit_identical(const TrainingState& found, const TrainingState& expected) {
    EXPECT_EQ(found.step, expected.step);
    EXPECT_EQ(bits(found.parameters), bits(expected.parameters));
    ASSERT_EQ(found.optimizer.size(), expected.optimizer.size());
    for (std::size_t i = 0; i < found.optimizer.size(); ++i) {
      EXPECT_EQ(found.optimizer[i].name, expected.optimizer[i].name);
      EXPECT_EQ(bits(found.optimizer[i].values), bits(expected.optimizer[i].values));
    }
  }

  // Changes the contents of a file, which must exist.
  template <typename Change>
  static void change(const std::filesystem::path& path, Change change) {
    data::test::Bytes bytes = data::test::read(path);
    change(bytes);
    data::test::write(path, bytes);
  }

  static constexpr const char* kShard = "model-00001-of-00001.safetensors";
  static constexpr const char* kIndex = "model.safetensors.index.json";

  math::ParameterLayout layout_;
  data::test::ScratchDirectory scratch_;
  data::PosixFileSystem disk_;
  CheckpointStore checkpoints_{disk_, scratch_.path()};
  std::vector<std::string> warnings_;
  std::uint64_t attempts_ = 0x1000;

 private:
  [[nodiscard]] math::AlignedVector values(std::uint32_t seed) const {
    math::AlignedVector values(layout_.size());
    for (const math::Variable& variable : layout_.variables()) {
      for (std::size_t i = 0; i < variable.size; ++i) {
        seed = seed * 1664525U + 1013904223U;
        values.span()[variable.offset + i] = std::bit_cast<float>(seed);
      }
    }
    constexpr std::uint32_t kSpecial[] = {0x7fc00001, 0xffa00000, 0x7f800000, 0x80000000, 1};
    for (std::size_t i = 0; i < std::size(kSpecial); ++i) {
      values.span()[i] = std::bit_cast<float>(kSpecial[i]);
    }
    return values;
  }
};

}  // namespace disttf::roles::test
