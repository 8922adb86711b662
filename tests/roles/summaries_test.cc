// What the chief records for TensorBoard, read back from its files.
#include "roles/chief/shell/summaries.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/tensorboard/event_file.h"
#include "data/tensorboard/events.h"
#include "math/model.h"
#include "roles/chief/shell/run_description.h"
#include "roles/chief/shell/run_pictures.h"
#include "roles/chief/shell/stored_events.h"
#include "storage/store/core/object_file_system.h"
#include "tests/data/scratch.h"
#include "tests/data/tensorboard/event_reader.h"
#include "tests/storage/memory_store.h"

namespace disttf::roles {
namespace {

using testing::ElementsAre;

// Two pixels, three classes, and four images in the test set.
class SummariesTest : public ::testing::Test {
 protected:
  SummariesTest() {
    config_.model = {.kind = math::ModelKind::kSoftmax,
                     .input = {.height = 1, .width = 2, .channels = 1},
                     .classes = 3};
    config_.trainers = 1;
    config_.train_steps = 1000;
    layout_ = math::layout_of(config_.model);
    dataset_.shape = {.height = 1, .width = 2, .channels = 1};
    dataset_.classes = 3;
    dataset_.test = {.images = pixels_, .labels = labels_};
    parameters_ = math::AlignedVector(layout_.size());
    found_ = {.loss = 0.25, .correct = 3, .rows = 4, .classes = 3, .answers = {0, 1, 2, 2}};
  }

  void start(std::uint64_t every = 10, std::uint64_t histogram_every = 0) {
    options_ = {.directory = scratch_.path(), .every = every, .histogram_every = histogram_every};
    summaries_ = std::make_unique<Summaries>(options_, config_, layout_, dataset_, 1);
  }
  void finish() { summaries_.reset(); }  // everything is written then

  void make_step(std::uint64_t step, bool is_last = false) {
    summaries_->goes_on_from(step - 1);
    summaries_->made({.step = step,
                      .loss = static_cast<float>(step),
                      .parameters = parameters_.span(),
                      .gradient = parameters_.span(),
                      .is_last = is_last});
  }
  void evaluate(std::uint64_t step, bool is_last) {
    summaries_->evaluated(step, found_, found_, parameters_.span(), parameters_.span(), is_last);
  }

  // Returns the events of all files of a directory, in the order of the files' names.
  [[nodiscard]] std::vector<std::string> events(const std::string& name) const {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(scratch_.path() / name)) {
      if (entry.path().filename().string().find("tfevents") != std::string::npos) {
        files.push_back(entry.path());
      }
    }
    std::sort(files.begin(), files.end());
    std::vector<std::string> all;
    for (const auto& file : files) {
      const data::test::Bytes bytes = data::test::read(file);
      const data::ReadEvents read = data::read_events(std::string(bytes.begin(), bytes.end()));
      EXPECT_EQ(read.rest, 0U);
      all.insert(all.end(), read.events.begin(), read.events.end());
    }
    return all;
  }
  // Returns their steps, of events with this tag, and "start 1" for a START.
  [[nodiscard]] std::vector<std::string> steps(const std::string& name,
                                               const std::string& tag) const {
    std::vector<std::string> found;
    for (const std::string& event : events(name)) {
      const std::string step = std::to_string(data::step_of(event));
      if (data::is_session_start(event)) {
        found.push_back("start " + step);
      } else if (data::values_of(event).contains(tag)) {
        found.push_back(step);
      }
    }
    return found;
  }

  const std::vector<std::uint8_t> pixels_ = {0, 255, 255, 0, 9, 9, 7, 7};
  const std::vector<std::uint8_t> labels_ = {0, 1, 2, 0};
  data::test::ScratchDirectory scratch_;
  RunConfig config_;
  math::ParameterLayout layout_;
  data::Dataset dataset_;
  math::AlignedVector parameters_;
  math::Evaluation found_;
  SummaryOptions options_;
  std::unique_ptr<Summaries> summaries_;
};

TEST_F(SummariesTest, HaveTheFirstStepTheDueOnesAndTheLast) {
  start(10);
  for (std::uint64_t step = 1; step <= 25; ++step) {
    make_step(step, step == 25);
  }
  finish();
  EXPECT_THAT(steps("chief", "loss"), ElementsAre("start 1", "1", "10", "20", "25"));
  // The last but one; the last contains the gradient's histograms.
  EXPECT_EQ(data::scalar_of(data::values_of(*(events("chief").rbegin() + 1)).at("loss")), 25);
}

TEST_F(SummariesTest, OfAsyncStepsAreDueWhereAMultipleWasPassed) {
  config_.sync_replicas = false;
  start(10);
  std::uint64_t before = 0;
  for (const std::uint64_t step : {7U, 13U, 14U, 31U}) {
    summaries_->goes_on_from(std::exchange(before, step));
    summaries_->made(
        {.step = step, .parameters = parameters_.span(), .gradient = parameters_.span()});
  }
  finish();
  EXPECT_THAT(steps("chief", "staleness"), ElementsAre("start 1", "7", "13", "31"));
}

TEST_F(SummariesTest, OfARunThatGoesOnFromACheckpointSayFromWhere) {
  start(10);
  make_step(1);
  finish();
  start(10);
  make_step(31);
  finish();
  EXPECT_THAT(steps("chief", "loss"), ElementsAre("start 1", "1", "start 31", "31"));
  EXPECT_THAT(steps("eval", "none"), ElementsAre("start 1", "start 31"));
}

TEST_F(SummariesTest, OfARunThatIsRolledBackSaySoInTheSameFile) {
  start(1);
  make_step(1);
  make_step(2);
  make_step(3);
  make_step(2);  // of the state of step 1
  finish();
  EXPECT_THAT(steps("chief", "loss"), ElementsAre("start 1", "1", "2", "3", "start 2", "2"));
}

TEST_F(SummariesTest, WithoutScalarsOfStepsHaveNone) {
  start(0);
  make_step(1);
  make_step(100, true);
  evaluate(100, true);
  finish();
  EXPECT_THAT(steps("chief", "loss"), ElementsAre("start 1"));
  EXPECT_THAT(steps("eval", "accuracy"), ElementsAre("start 1", "100"));
}

TEST_F(SummariesTest, HaveHistogramsOfAStepOnce) {
  start(0, 5);
  for (std::uint64_t step = 1; step <= 5; ++step) {
    make_step(step);
  }
  evaluate(5, false);
  finish();
  EXPECT_THAT(steps("chief", "weights/sm_w"), ElementsAre("start 1", "5"));
  EXPECT_THAT(steps("chief", "gradients/sm_w"), ElementsAre("start 1", "5"));
  EXPECT_THAT(steps("chief", "first_layer/sm_w"), ElementsAre("start 1", "5"));
}

TEST_F(SummariesTest, OfAResultAloneBeginAtIt) {
  start();
  evaluate(40, true);
  summaries_->ended(true);
  finish();
  EXPECT_THAT(steps("eval", "accuracy"), ElementsAre("start 40", "40"));
  EXPECT_THAT(steps("chief", "weights/sm_w"), ElementsAre("start 40", "40"));
  EXPECT_THAT(steps("chief", "gradients/sm_w"), ElementsAre("start 40"));
  EXPECT_TRUE(data::values_of(events("eval").back()).contains("_hparams_/session_end_info"));
}

TEST_F(SummariesTest, HaveTheImagesThatAreTakenForSomethingElse) {
  start();
  evaluate(40, true);
  finish();
  const auto values = data::values_of(events("chief").back());
  std::vector<std::string> parts;
  for (const data::ReadField& field : data::read_message(values.at("wrong"))) {
    if (field.number == 8) {
      parts.push_back(field.bytes.substr(0, 4));
    }
  }
  EXPECT_THAT(parts, ElementsAre("2", "1", "\x89PNG"));
  EXPECT_THAT(data::field_of(values.at("wrong_labels"), 8).bytes,
              testing::EndsWith("|---|---|---|---|\n| 1 | 3 | 0 | 2 |\n"));
}

TEST_F(SummariesTest, DrawWeightsFromBlackOverGreyToWhite) {
  float* const weights = parameters_.data();  // [2 pixels, 3 classes]
  weights[0] = -2;                            // class 0: -2, 1
  weights[3] = 1;
  weights[1] = 0.5F;  // class 1: 0.5, 0
  const auto picture = picture_of_weights(config_.model, layout_, parameters_.span());
  ASSERT_TRUE(picture);
  EXPECT_EQ(picture->name, "sm_w");
  // Each pixel is 14 x 14. Two filters are next to each other, the third is below.
  EXPECT_EQ(picture->width, 2 * 28U + 1);
  EXPECT_EQ(picture->height, 2 * 14U + 1);
  EXPECT_EQ(picture->pixels[0], 0);
  EXPECT_EQ(picture->pixels[14], 191);
  EXPECT_EQ(picture->pixels[29], 255);
  EXPECT_EQ(picture->pixels[29 + 14], 128);
  EXPECT_EQ(picture->pixels[15 * picture->width], 128) << "all of class 2 are 0";
}

TEST_F(SummariesTest, HaveAGraphWithVariablesOnThePsThatOwnThem) {
  config_.model = {};
  layout_ = math::layout_of(config_.model);
  std::vector<std::string> variables;
  for (const data::GraphNode& node : run_graph(config_, layout_, 2)) {
    if (node.op == "VariableV2") {
      variables.push_back(node.name + " " + node.device + " " + node.attributes.at("parameters"));
    }
  }
  EXPECT_THAT(variables, ElementsAre("hid/hid_w/part_0 /job:ps/task:0 [0, 39936)",
                                     "hid/hid_w/part_1 /job:ps/task:1 [39936, 78400)",
                                     "hid/hid_b /job:ps/task:1 [78400, 78500)",
                                     "sm/sm_w /job:ps/task:1 [78512, 79512)",
                                     "sm/sm_b /job:ps/task:1 [79520, 79530)"));
}

// One node for what the program does with its variables.
TEST_F(SummariesTest, HaveAGraphOfAProgramWithItsVariables) {
  config_.model.variables = {{.name = "fc.weight", .shape = {784, 10}},
                             {.name = "scale", .shape = {}}};
  layout_ = math::layout_of(config_.model);
  std::vector<std::string> nodes;
  for (const data::GraphNode& node : run_graph(config_, layout_, 1)) {
    nodes.push_back(node.name + " " + node.op);
  }
  EXPECT_THAT(nodes, ElementsAre("variables/fc.weight VariableV2", "variables/scale VariableV2",
                                 "program program", "loss loss", "gradient gradient",
                                 "update/ps_0 " +
                                     std::string(math::optimizer_name(config_.optimizer.kind))));
  const auto columns = hyper_parameters(config_);
  const auto model = std::ranges::find(columns, "model", &data::HyperParameter::name);
  ASSERT_NE(model, columns.end());
  EXPECT_EQ(std::get<std::string>(model->value), "program of 2 variables");
}

// A graph of many thousands of nodes would show nothing.
TEST_F(SummariesTest, HaveAGraphOfTheFirstVariablesOfALargeProgram) {
  config_.model.variables.clear();
  for (std::size_t i = 0; i < 5000; ++i) {
    config_.model.variables.push_back({.name = "w" + std::to_string(i), .shape = {1}});
  }
  layout_ = math::layout_of(config_.model);
  EXPECT_EQ(run_graph(config_, layout_, 1).size(), 1004U);
}

TEST_F(SummariesTest, HaveAColumnForEverySettingButTheChecksumOfTheData) {
  std::vector<std::string> names;
  for (const data::HyperParameter& each : hyper_parameters(config_)) {
    names.push_back(each.name);
  }
  EXPECT_THAT(names, testing::IsSupersetOf({"optimizer", "learning_rate", "model", "dataset"}));
  EXPECT_THAT(names, testing::Not(testing::Contains("data_checksum")));
}

TEST_F(SummariesTest, HaveTheNumbersOfAProgram) {
  const math::ToldNumbers numbers = {{"norm", 2.5}, {"loss", 9}};
  config_.model = {};
  config_.model.variables = {{.name = "w", .shape = {3}}};
  layout_ = math::layout_of(config_.model);
  parameters_ = math::AlignedVector(layout_.size());
  found_ = {.loss = std::nan(""), .is_told = true, .told_accuracy = 0.5, .told = {{"f1", 0.75}}};
  start(1);
  summaries_->goes_on_from(0);
  summaries_->made({.step = 1,
                    .loss = 3,
                    .numbers = numbers,
                    .parameters = parameters_.span(),
                    .gradient = parameters_.span()});
  evaluate(1, /*is_last=*/false);
  finish();
  std::map<std::string, std::string> values;
  for (const std::string name : {"chief", "eval"}) {
    for (const std::string& event : events(name)) {
      values.merge(data::values_of(event));
    }
  }
  EXPECT_EQ(data::scalar_of(values.at("norm")), 2.5F);
  EXPECT_EQ(data::scalar_of(values.at("loss")), 3.0F) << "a tag has one value for each step";
  EXPECT_EQ(data::scalar_of(values.at("f1")), 0.75F);
  EXPECT_EQ(data::scalar_of(values.at("accuracy")), 0.5F);
  EXPECT_FALSE(values.contains("test_accuracy")) << "a program evaluates once";
  EXPECT_TRUE(values.contains("weights/w")) << "though there is no picture of them";
}

// Events for TensorBoard that are written to a store. The store is in memory and can be
// unavailable.

using namespace std::chrono_literals;
using testing::IsEmpty;
using testing::StartsWith;

std::string event_of(std::uint64_t step) {
  data::SummaryEvent event;
  event.add_scalar("loss", 0.5);
  return event.event({.wall_time = 1.5, .step = step});
}

class StoredEventsTest : public testing::Test {
 protected:
  StoredEventsTest() {
    store_->before = [this](std::size_t) {
      if (!is_away_) return;
      ++refused_;
      refused_.notify_all();
      throw std::system_error(StoreError::kAway);
    };
  }
  // The events have a store of their own, for as long as they exist.
  std::unique_ptr<StoredEvents> events(std::size_t most_waiting = StoredEvents::kMostWaiting) {
    return std::make_unique<StoredEvents>("s3://bucket/log/chief",
                                          std::make_unique<ObjectFileSystem>(store_, "s3://bucket"),
                                          most_waiting);
  }
  static void add(StoredEvents& events, std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t step = first; step <= last; ++step) {
      EXPECT_FALSE(events.append(event_of(step)));
    }
  }
  // Returns the steps in all files, in the order of the files' names. Each file must begin with its
  // version.
  [[nodiscard]] std::vector<std::uint64_t> steps() const {
    std::vector<std::uint64_t> found;
    for (const auto& [key, bytes] : store_->objects) {
      EXPECT_THAT(key, StartsWith("log/chief/events.out.tfevents."));
      const auto events = data::read_events(bytes).events;
      EXPECT_TRUE(!events.empty() && data::has_field(events.front(), 3)) << key;
      for (std::size_t i = 1; i < events.size(); ++i) found.push_back(data::step_of(events[i]));
    }
    return found;
  }

  std::shared_ptr<MemoryStore> store_ = std::make_shared<MemoryStore>();
  std::atomic<bool> is_away_ = false;
  std::atomic<int> refused_ = 0;
};

TEST_F(StoredEventsTest, AreThereAtTheEndBehindThoseOfEarlierProcesses) {
  for (const std::uint64_t first : {1U, 4U, 7U}) {
    const auto all = events();
    add(*all, first, first + 2);
  }
  EXPECT_GE(store_->objects.size(), 3U);
  EXPECT_THAT(steps(), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9));
}

TEST_F(StoredEventsTest, OfNothingThereIsNoFile) {
  { const auto none = events(); }
  EXPECT_THAT(steps(), IsEmpty());
}

TEST_F(StoredEventsTest, WaitForAStoreThatIsAwayAndGoThereInTheirOrder) {
  is_away_ = true;
  auto all = events();
  add(*all, 1, 3);
  refused_.wait(0);  // the first file was refused
  add(*all, 4, 6);
  is_away_ = false;
  all.reset();
  EXPECT_GE(store_->objects.size(), 2U);
  EXPECT_THAT(steps(), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_F(StoredEventsTest, DoNotWaitForEver) {
  is_away_ = true;
  auto all = events();
  add(*all, 1, 3);
  all.reset();
  EXPECT_GE(refused_, 1);
  EXPECT_THAT(steps(), IsEmpty());
}

TEST_F(StoredEventsTest, ThatHaveNoRoomAreLeftOut) {
  const std::size_t size = data::event_record(event_of(1)).size();
  is_away_ = true;
  auto all = events(2 * size);
  add(*all, 1, 2);
  EXPECT_EQ(all->append(event_of(3)), std::errc::no_buffer_space);
  is_away_ = false;
  all.reset();
  EXPECT_THAT(steps(), ElementsAre(1, 2));
}

TEST(StoredEventsWait, IsATwentiethOfTheTimeWithinBounds) {
  EXPECT_EQ(StoredEvents::wait_at(0s), 2s);
  EXPECT_EQ(StoredEvents::wait_at(60s), 3s);
  EXPECT_EQ(StoredEvents::wait_at(24h), 5min);
}

}  // namespace
}  // namespace disttf::roles
