// Reading a trained model from the disk, from a checkpoint whose author is not trusted.
#include "roles/model/shell/model_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "data/posix_file_system.h"
#include "roles/checkpoint/core/checkpoint_store.h"
#include "roles/run/outcome.h"
#include "tests/data/scratch.h"
#include "tests/roles/run_configs.h"

namespace disttf::roles {
namespace {

TEST(ModelFiles, AModelThatNoneCanBeIsRefusedByItsCheckpointsName) {
  const data::test::ScratchDirectory scratch;
  data::PosixFileSystem disk;
  math::ParameterLayout layout;
  layout.add("w", {2});
  auto configuration = nlohmann::json::parse(to_saved_json(base_config()));
  configuration["model"] = nlohmann::json::array({{{"type", "dense"}, {"units", 0}}});
  CheckpointStore(disk, scratch.path())
      .save(1, {.step = 3, .parameters = math::AlignedVector(layout.size()), .optimizer = {}},
            layout, configuration.dump(), 0);
  try {
    static_cast<void>(read_model(scratch.path()));
    FAIL() << "it was read";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.exit_code(), kUsage);
    EXPECT_THAT(failure.what(), testing::HasSubstr("checkpoint-00000003"));
    EXPECT_THAT(failure.what(), testing::HasSubstr("units: 0"));
  }
}

}  // namespace
}  // namespace disttf::roles
