// Reading a trained model from the disk, from a checkpoint whose author is not trusted.
#include "model/model_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "data/posix_file_system.h"
#include "model/predict/predict_command.h"
#include "roles/serve/shell/model_registry.h"
#include "roles/serve/shell/serve_meters.h"
#include "run/monitor/shell/metric_registry.h"
#include "run/outcome.h"
#include "storage/checkpoint/core/checkpoint_store.h"
#include "tests/data/scratch.h"
#include "tests/run/run_configs.h"

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

// A model of a few parameters, the outputs of whose first layer take 32 GiB for each row.
TrainedModel model_with_huge_outputs() {
  TrainedModel model;
  model.config = base_config();
  model.config.model.input = {.height = 1024, .width = 1024, .channels = 1};
  model.config.model.classes = 2;
  const auto layer = [](const char* type, math::LayerValues fields) {
    return math::LayerSpec{.type = type, .name = "", .fields = std::move(fields)};
  };
  model.config.model.layers = {
      layer("conv2d", {{"channels", 4096.0}, {"kernel", 1.0}}), layer("max_pool", {{"size", 32.0}}),
      layer("max_pool", {{"size", 32.0}}), layer("flatten", {}), layer("dense", {{"units", 2.0}})};
  model.parameters = math::AlignedVector(math::layout_of(model.config.model).size());
  return model;
}

template <typename Work>
Failure failure_of(Work work) {
  try {
    work();
  } catch (const Failure& failure) {
    return failure;
  }
  return {kDone, "nothing was thrown"};
}

TEST(ModelFiles, AModelWhoseOutputsNoMemoryHoldsIsRefusedBeforeAnyIsTaken) {
  const data::test::ScratchDirectory scratch;
  data::PosixFileSystem disk;
  TrainedModel model = model_with_huge_outputs();
  CheckpointStore(disk, scratch.path())
      .save(1, {.step = 3, .parameters = std::move(model.parameters), .optimizer = {}},
            math::layout_of(model.config.model), to_saved_json(model.config), 0);
  PredictOptions options;
  options.model = scratch.path();
  const Failure failure = failure_of([&] { static_cast<void>(run_predict(options)); });
  EXPECT_EQ(failure.exit_code(), kError);
  EXPECT_THAT(failure.what(), testing::StartsWith("this process does not have the memory for the "
                                                  "outputs of all layers of the model: it takes"));
}

TEST(ModelFiles, ServeRefusesSuchAModelToo) {
  MetricRegistry metrics;
  ServeMeters meters(metrics, 1);
  const ModelRegistry registry(/*threads=*/1, /*max_rows=*/64, meters);
  const Failure failure =
      failure_of([&] { static_cast<void>(registry.try_out(model_with_huge_outputs(), "m")); });
  EXPECT_EQ(failure.exit_code(), kError);
  EXPECT_THAT(failure.what(), testing::HasSubstr("the outputs of all layers of m: it takes"));
}

}  // namespace
}  // namespace disttf::roles
