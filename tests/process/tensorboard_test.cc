// The chief's TensorBoard files, read by the real TensorBoard with both of its loaders: the same
// figures as the log and the metrics file, also after kill -9 and a resumed run.
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "tests/process/faulty_proxy.h"
#include "tests/process/hdfs_server.h"
#include "tests/process/on_store.h"
#include "tests/process/process.h"
#include "tests/process/process_test.h"
#include "tests/support/engines.h"

namespace disttf::test_process {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

// Returns the python3 of the environment with tensorboard that .ci/tools makes.
std::filesystem::path python_with_tensorboard() {
  const char* const given = std::getenv("DISTTF_TENSORBOARD");
  return given != nullptr
             ? std::filesystem::path(given)
             : source_directory() / "build" / "tools" / "tensorboard" / "bin" / "python";
}

// Returns whether it is installed; `why`: why not.
bool is_tensorboard_installed(std::string& why) {
  why = python_with_tensorboard().string() +
        " is not there: .ci/tools makes it; or DISTTF_TENSORBOARD names one";
  return std::filesystem::exists(python_with_tensorboard());
}

// Returns the arguments of python that write what TensorBoard shows of `directory` to `file` as
// JSON, once it has reached the end of a run of that many steps. `loader`: "fast" or "slow", see
// read_tensorboard.py.
Words words_to_show(const std::string& loader, const std::filesystem::path& directory, int steps,
                    const std::filesystem::path& file) {
  return {(source_directory() / "tests" / "process" / "read_tensorboard.py").string(), loader,
          directory.string(), std::to_string(steps), file.string()};
}

// The log has four decimals, TensorBoard's scalars are float32.
constexpr double kLogged = 0.51e-4;
constexpr double kFloat32 = 1e-6;

// Returns the loss by step from the log of a launch's chief.
std::map<std::uint64_t, double> logged_losses(const Process& launch) {
  static const std::regex kLine(
      R"(Worker 0: training step \d+ done \(global step: (\d+), loss: ([0-9.]+)\))");
  std::map<std::uint64_t, double> losses;
  const std::string log = launch.standard_error();
  for (std::sregex_iterator line(log.begin(), log.end(), kLine); line != std::sregex_iterator();
       ++line) {
    losses[std::stoull((*line)[1])] = std::stod((*line)[2]);
  }
  return losses;
}

// Returns the newest event file in it.
std::filesystem::path newest_events(const std::filesystem::path& directory) {
  std::filesystem::path newest;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().filename().string().find("tfevents") != std::string::npos) {
      newest = std::max(newest, entry.path());
    }
  }
  return newest;
}

// Appends the beginning of a record, like a write() that kill -9 has cut short.
void tear(const std::filesystem::path& events) {
  std::string beginning(17, '\0');
  std::ifstream(events, std::ios::binary).read(beginning.data(), 17);
  std::ofstream(events, std::ios::binary | std::ios::app) << beginning;
}

class Summaries : public ProcessTest {
 protected:
  Process& launch(const std::string& name, const Words& flags) {
    return run(name, Words{"launch", "--workers=2", "--log_every=1"} + flags + data_flags());
  }
  [[nodiscard]] std::filesystem::path train_dir() const { return scratch() / "runs" / "train"; }
};

class TensorBoard : public Summaries, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    std::string why;
    if (!is_tensorboard_installed(why)) test_support::skip_without_engine(why);
  }

  // Returns what TensorBoard shows once it has reached the end of a run of that many steps.
  json shown(const std::filesystem::path& directory, int steps) {
    Process& reader = run_program(
        python_with_tensorboard(),
        words_to_show(GetParam(), directory, steps, scratch() / "shown.json"), "TensorBoard");
    EXPECT_TRUE(exits(reader, kExitDone, seconds(150)));
    std::ifstream file(scratch() / "shown.json");
    return json::parse(file, nullptr, /*allow_exceptions=*/false);
  }

  static void expect_losses(const json& points, const std::map<std::uint64_t, double>& losses) {
    ASSERT_EQ(points.size(), losses.size());
    std::size_t i = 0;
    for (const auto& [step, loss] : losses) {
      EXPECT_EQ(points[i][0], step);
      EXPECT_NEAR(points[i][1].get<double>(), loss, kLogged) << step;
      ++i;
    }
  }
};

void expect_evaluations(const json& scalars, const std::filesystem::path& metrics) {
  std::ifstream file(metrics);
  std::size_t i = 0;
  for (std::string text; std::getline(file, text); ++i) {
    const json line = json::parse(text);
    for (const auto& [tag, key] :
         std::map<std::string, std::string>{{"loss", "validation_cross_entropy"},
                                            {"accuracy", "validation_accuracy"},
                                            {"test_loss", "test_cross_entropy"},
                                            {"test_accuracy", "test_accuracy"}}) {
      ASSERT_LT(i, scalars[tag].size());
      EXPECT_EQ(scalars[tag][i][0], line["step"]);
      EXPECT_NEAR(scalars[tag][i][1].get<double>(), line[key].get<double>(), kFloat32) << tag;
    }
  }
  EXPECT_EQ(i, scalars["loss"].size());
}

void expect_histograms(const json& of_run) {
  for (const char* kind : {"weights/", "gradients/"}) {
    for (const auto& [variable, size] : std::map<std::string, double>{
             {"hid_w", 78'400}, {"hid_b", 100}, {"sm_w", 1000}, {"sm_b", 10}}) {
      const json& points = of_run[kind + variable];
      ASSERT_EQ(points.size(), 2U) << kind << variable;
      EXPECT_EQ(points[0][0], 20);
      EXPECT_EQ(points[1][0], 40);
      double count = 0;
      for (const json& bucket : points[1][1]) {
        count += bucket[2].get<double>();
      }
      EXPECT_EQ(count, size) << kind << variable;
    }
  }
}

TEST_P(TensorBoard, ShowsTheFiguresOfLogAndMetricsFile) {
  const std::string metrics = (scratch() / "metrics.jsonl").string();
  Process& job =
      launch("launch", {"--ps=2", "--train_steps=40", "--eval_every=20", "--summary_every=1",
                        "--train_dir=" + train_dir().string(), "--metrics_file=" + metrics});
  ASSERT_TRUE(exits(job, kExitDone));
  json all = shown(train_dir(), 40);
  ASSERT_TRUE(all.is_object());
  expect_losses(all["scalars"]["chief"]["loss"], logged_losses(job));
  EXPECT_EQ(all["scalars"]["chief"]["learning_rate"].size(), 40U);
  EXPECT_EQ(all["scalars"]["chief"]["images_per_second"].size(), 40U);
  expect_evaluations(all["scalars"]["eval"], metrics);
  expect_histograms(all["histograms"]["chief"]);
  // 25 of the wrong ones, and as many rows of the table with their labels, below its head.
  EXPECT_EQ(all["images"]["chief"]["wrong"].size(), 25U);
  EXPECT_EQ(count_of(all["texts"]["chief"]["wrong_labels"].back()[1], "<tr>"), 26U);
  EXPECT_EQ(all["images"]["chief"]["first_layer/hid_w"].size(), 1U);
  const std::string graph = all["graph"]["chief"];
  EXPECT_THAT(graph, HasSubstr("name: \"hid/hid_w/part_0\"\n  op: \"VariableV2\"\n  device: "
                               "\"/job:ps/task:0\""));
  EXPECT_THAT(graph, HasSubstr("name: \"hid/hid_w/part_1\"\n  op: \"VariableV2\"\n  device: "
                               "\"/job:ps/task:1\""));
  EXPECT_THAT(graph, HasSubstr("name: \"sm/sm_w\"\n  op: \"VariableV2\"\n  device: "
                               "\"/job:ps/task:1\""));
  const json& session = all["hparams"]["groups"]["sessionGroups"][0]["sessions"][0];
  EXPECT_EQ(session["name"], "eval");
  EXPECT_EQ(all["hparams"]["groups"]["sessionGroups"][0]["hparams"]["train_steps"], 40);
  EXPECT_NEAR(session["metricValues"][0]["value"].get<double>(), accuracy_in(job), kLogged);
  EXPECT_EQ(all["projector"]["chief"]["shape"], json::array({500, 100}));
  EXPECT_EQ(all["projector"]["chief"]["labels"].size(), 501U);
}

TEST_P(TensorBoard, ShowsEachStepOnceAfterKillNineInTheMiddleOfARecordAndAResumedRun) {
  const Words flags = {"--train_steps=60",    "--eval_every=10",
                       "--save_steps=10",     "--save_secs=0",
                       "--summary_every=1",   "--histogram_every=5",
                       "--debug_delay_ms=20", "--train_dir=" + train_dir().string()};
  Process& first = launch("first", flags);
  // The saved steps depend on the time of a save.
  ASSERT_TRUE(says(first, "Saved checkpoint at global step [1-9]"));
  ASSERT_TRUE(says(first, R"(Worker 0: .*global step: 3\d,)"));
  const std::vector<pid_t> tasks = children_of(first.pid());
  first.send(SIGKILL);
  ASSERT_TRUE(killed(first, SIGKILL));
  ASSERT_TRUE(wait_until_gone(tasks));
  for (const char* name : {"chief", "eval"}) {
    tear(newest_events(train_dir() / name));
  }
  Process& second = launch("second", flags);
  ASSERT_TRUE(exits(second, kExitDone));
  const auto from =
      std::stoull(captured(second.standard_error(), R"(Restoring from .*: global step (\d+))"));
  EXPECT_GT(from, 0U);
  // Repeated steps are bit-identical, so their losses are, too.
  std::map<std::uint64_t, double> losses = logged_losses(first);
  losses.merge(logged_losses(second));
  ASSERT_EQ(losses.size(), 60U);
  json all = shown(scratch() / "runs", 60);
  ASSERT_TRUE(all.is_object());
  expect_losses(all["scalars"]["train/chief"]["loss"], losses);
  std::vector<std::uint64_t> steps;
  for (const json& point : all["scalars"]["train/eval"]["accuracy"]) {
    steps.push_back(point[0]);
  }
  EXPECT_THAT(steps, testing::ElementsAre(10, 20, 30, 40, 50, 60));
  steps.clear();
  for (const json& point : all["histograms"]["train/chief"]["weights/hid_w"]) {
    steps.push_back(point[0]);
  }
  EXPECT_THAT(steps, testing::ElementsAre(5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60));
  const json& session = all["hparams"]["groups"]["sessionGroups"][0]["sessions"][0];
  EXPECT_EQ(session["name"], "train/eval");
  EXPECT_EQ(session["status"], "STATUS_SUCCESS");
  EXPECT_NEAR(session["metricValues"][0]["value"].get<double>(), accuracy_in(second), kLogged);
}

INSTANTIATE_TEST_SUITE_P(BothLoaders, TensorBoard, ::testing::Values("fast", "slow"),
                         [](const auto& each) { return std::string(each.param); });

TEST_F(Summaries, LeaveTheWeightsWhatTheyAre) {
  const Words flags = {"--train_steps=30", "--print_weights_hash"};
  Process& without = launch("without", flags);
  ASSERT_TRUE(exits(without, kExitDone));
  Process& with =
      launch("with", flags + Words{"--summary_every=1", "--histogram_every=1", "--eval_every=10",
                                   "--log_dir=" + (scratch() / "events").string()});
  ASSERT_TRUE(exits(with, kExitDone));
  EXPECT_EQ(weights_hash_in(with), weights_hash_in(without));
  EXPECT_FALSE(newest_events(scratch() / "events" / "chief").empty());
}

TEST_F(Summaries, ThatCannotBeWrittenAreToldOnceAndTrainingGoesOn) {
  std::filesystem::create_directories(scratch() / "events");
  std::ofstream(scratch() / "events" / "chief") << "a file";
  Process& job = launch("launch", {"--train_steps=30", "--summary_every=1",
                                   "--log_dir=" + (scratch() / "events").string()});
  ASSERT_TRUE(exits(job, kExitDone));
  EXPECT_EQ(count_of(job.standard_error(), "chief cannot be written: Not a directory"), 1U);
  EXPECT_FALSE(newest_events(scratch() / "events" / "eval").empty());
}

// The chief's TensorBoard files with --log_dir in a store: TensorBoard shows all of them, with both
// of its loaders, and an unreachable store costs a warning.

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
