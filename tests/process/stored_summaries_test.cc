// The chief's TensorBoard files with --log_dir in a store: TensorBoard shows all of them, with both
// of its loaders, and an unreachable store costs a warning.
#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/process/faulty_proxy.h"
#include "tests/process/hdfs_server.h"
#include "tests/process/on_store.h"
#include "tests/process/tensorboard.h"

namespace disttf::test_process {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr int kSteps = 40;

Words training(const std::string& log_dir, const Words& more = {}) {
  return Words{"launch",
               "--workers=1",
               "--train_steps=" + std::to_string(kSteps),
               "--eval_every=20",
               "--summary_every=1",
               "--print_weights_hash",
               "--log_dir=" + log_dir} +
         more + data_flags();
}

// `Store`: OnBucket, or OnStore of a server.
template <typename Store>
class Shown : public Store {
 protected:
  void SetUp() override {
    Store::SetUp();
    std::string why;
    if (this->server_ && !is_tensorboard_installed(why)) test_support::skip_without_engine(why);
  }

  // Returns what TensorBoard shows of a URL in the store, copied to this machine.
  json shown(const std::string& loader, const std::string& place) {
    this->done({"cp", place, "shown-" + loader});
    Process& reader = this->run_program(python_with_tensorboard(),
                                        words_to_show(loader, this->scratch() / ("shown-" + loader),
                                                      kSteps, this->scratch() / "shown.json"),
                                        "TensorBoard");
    EXPECT_TRUE(exits(reader, kExitDone, seconds(150)));
    std::ifstream file(this->scratch() / "shown.json");
    return json::parse(file, nullptr, /*allow_exceptions=*/false);
  }

  // Expects the complete run, from the first to the last step.
  void expect_all_of_it(const std::string& place) {
    for (const char* loader : {"fast", "slow"}) {
      json all = shown(loader, place);
      ASSERT_TRUE(all.is_object()) << loader;
      const json& losses = all["scalars"]["chief"]["loss"];
      ASSERT_EQ(losses.size(), static_cast<std::size_t>(kSteps)) << loader;
      for (int i = 0; i < kSteps; ++i)
        EXPECT_EQ(losses[static_cast<std::size_t>(i)][0], i + 1) << loader;
      EXPECT_EQ(all["scalars"]["eval"]["accuracy"].size(), 2U) << loader;
      EXPECT_EQ(all["histograms"]["chief"]["weights/hid_w"].size(), 2U) << loader;
      EXPECT_EQ(all["projector"]["chief"]["labels"].size(), 501U) << loader;
    }
  }
  std::size_t files_in(const std::string& place) {
    const json found = json::parse(this->done({"ls", place, "--json"}).standard_output());
    return found["entries"].size();
  }
};

using BucketSummaries = Shown<OnBucket>;
INSTANTIATE_TEST_SUITE_P(, BucketSummaries, each_bucket(), name_of_bucket);
using HdfsSummaries = Shown<OnStore<HdfsServer>>;

TEST_P(BucketSummaries, AreShownWholeAndTheWeightsAreTheSame) {
  // Slow enough that the store has a file before the end of the run.
  Process& with = done(training(at("runs/one"), {"--debug_delay_ms=200"}));
  EXPECT_GE(files_in(at("runs/one/chief")), 2U + 3U);  // including the projector's
  expect_all_of_it(at("runs/one"));
  Process& without = done(training("here"));
  EXPECT_EQ(weights_hash_in(with), weights_hash_in(without));
}

TEST_P(BucketSummaries, WaitForAStoreThatIsAway) {
  std::atomic<bool> is_away = true;
  const FaultyProxy proxy(server_->port(), [&](const ProxiedRequest&) {
    return is_away ? Fault::kError : Fault::kNone;
  });
  Process& job =
      disttf(training(at("run"), {"--debug_delay_ms=400"}), server_->variables_at(proxy.port()));
  for (const char* name : {"chief", "eval"}) {
    ASSERT_TRUE(
        says(job, "--log_dir: " + at("run/") + name + " cannot be written now; will retry"));
  }
  is_away = false;
  ASSERT_TRUE(exits(job, kExitDone));
  EXPECT_EQ(count_of(job.standard_error(), "cannot be written now"), 2U);
  expect_all_of_it(at("run"));
}

TEST_P(BucketSummaries, OfARunWhoseStoreStaysAwayAreLeftOutWithAWarning) {
  const FaultyProxy proxy(server_->port(), [](const ProxiedRequest&) { return Fault::kError; });
  Process& job = done(training(at("run")), server_->variables_at(proxy.port()));
  EXPECT_THAT(job.standard_error(),
              HasSubstr("TensorBoard were not written to " + at("run/chief")));
}

TEST_F(HdfsSummaries, AreShownWhole) {
  const std::string place = server_->url() + "/runs/one";
  done(training(place, {"--debug_delay_ms=200"}));
  expect_all_of_it(place);
}

}  // namespace
}  // namespace disttf::test_process
