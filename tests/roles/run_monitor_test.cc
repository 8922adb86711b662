// The chief's monitor with its thread: what becomes a record, where it is written, and that slow
// readers delay no other process.
#include "roles/chief/shell/run_monitor.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "math/model.h"
#include "roles/chief/shell/run_pictures.h"
#include "run/monitor/core/record.h"
#include "run/monitor/core/task_metrics.h"
#include "tests/data/scratch.h"
#include "tests/run/run_configs.h"

namespace disttf::roles {
namespace {

using testing::Contains;
using testing::ElementsAre;
using Json = nlohmann::json;

class RunMonitorTest : public testing::Test {
 protected:
  RunMonitorTest() {
    task_.cluster = {.ps = {{.host = "p", .port = 1}},
                     .workers = {{.host = "a", .port = 1}, {.host = "b", .port = 1}},
                     .chief = {},
                     .evaluators = {}};
    task_.self = {.job = net::Job::kWorker, .index = 0};
    config_.trainers = 2;
    config_.train_steps = 1'000'000;
  }
  // Returns the records of a monitor that `use` has used, once all are written.
  template <typename Use>
  std::vector<Json> records(Use use, RunMonitor::Options options = {}) {
    std::mutex mutex;
    std::vector<Json> read;
    options.also = [&](const std::string& line) {
      const std::scoped_lock lock(mutex);
      read.push_back(Json::parse(line));
    };
    {
      RunMonitor monitor(task_, config_, options);
      use(monitor);
    }
    return read;
  }
  PsMetrics ps(std::vector<bool> present, std::uint64_t generation = 1) const {
    return {.task = {.job = net::Job::kPs, .index = 0},
            .process = {},
            .step = 7,
            .generation = generation,
            .replica_role = {},
            .present = std::move(present),
            .samples = {}};
  }
  static std::vector<std::string> of_kind(const std::vector<Json>& records, const char* kind,
                                          const char* field) {
    std::vector<std::string> found;
    for (const Json& record : records) {
      if (record["kind"] == kind) {
        found.push_back(record.at(field).is_string() ? record[field].get<std::string>()
                                                     : record[field].dump());
      }
    }
    return found;
  }

  Task task_;
  RunConfig config_ = base_config();
};

TEST_F(RunMonitorTest, TheNewestStepIsTold) {
  const auto read = records([](RunMonitor& monitor) {
    for (std::uint64_t step = 1; step <= 1000; ++step) {
      monitor.made(step, 0.5);
    }
  });
  ASSERT_FALSE(of_kind(read, "step", "step").empty());
  EXPECT_EQ(of_kind(read, "step", "step").back(), "1000");
  EXPECT_LT(of_kind(read, "step", "step").size(), 1000U) << "not each of them";
}

TEST_F(RunMonitorTest, TheLearningRateHasTheDigitsOfAFloat) {
  config_.optimizer.learning_rate = 0.3F;
  const auto read = records([](RunMonitor& monitor) { monitor.made(1, 0.5); });
  EXPECT_THAT(of_kind(read, "step", "learning_rate"), ElementsAre("0.3"));
}

TEST_F(RunMonitorTest, TheFirstStepIsToldHoweverShortTheRun) {
  const auto read = records([](RunMonitor& monitor) {
    for (std::uint64_t step = 1; step <= 1000; ++step) {
      monitor.made(step, 1.0 / static_cast<double>(step));
    }
  });
  const std::vector<std::string> steps = of_kind(read, "step", "step");
  ASSERT_GE(steps.size(), 16U);
  EXPECT_LE(steps.size(), 210U) << "bounded";
  EXPECT_EQ(steps.front(), "1");
  EXPECT_EQ(of_kind(read, "step", "loss").front(), "1.0");
  for (std::size_t each = 1; each < steps.size(); ++each) {
    EXPECT_LT(std::stoul(steps[each - 1]), std::stoul(steps[each]));
  }
}

TEST_F(RunMonitorTest, WhoComesAndGoesIsTold) {
  const auto read = records([this](RunMonitor& monitor) {
    monitor.told(0, {to_json(ps({true, false}))});
    monitor.told(0, {to_json(ps({true, true}))});
    monitor.told(0, {to_json(ps({true, true}))});
    monitor.told(0, {to_json(ps({true, false}))});
  });
  EXPECT_THAT(of_kind(read, "event", "text"),
              ElementsAre("worker:0 joined", "worker:1 joined", "worker:1 is disconnected"));
}

TEST_F(RunMonitorTest, AProgramThatWasKilledIsAnEvent) {
  const auto read = records([](RunMonitor& monitor) {
    // A new process numbers its programs from 1 on.
    for (const auto& [pid, programs] :
         {std::pair(7, 1U), {7, 1U}, {7, 2U}, {8, 1U}, {8, 2U}, {8, 5U}}) {
      const TrainerMetrics worker{.task = {.job = net::Job::kWorker, .index = 1},
                                  .process = {.host = "a", .pid = pid},
                                  .isa = "avx2",
                                  .samples = {},
                                  .programs = programs};
      monitor.told(0, {to_json(PsMetrics{}), to_json(worker)});
    }
  });
  EXPECT_THAT(of_kind(read, "event", "text"),
              ElementsAre("the program of worker:1 was killed and started again",
                          "the program of worker:1 was killed and started again",
                          "the program of worker:1 was killed, 3 times, and started again"));
}

TEST_F(RunMonitorTest, ARollbackIsRecorded) {
  const auto read = records([this](RunMonitor& monitor) {
    monitor.told(0, {to_json(ps({}, 1))});
    monitor.told(0, {to_json(ps({}, 2))});
  });
  EXPECT_THAT(of_kind(read, "event", "what"), ElementsAre("set_back"));
}

// These texts come from other machines.
TEST_F(RunMonitorTest, NonsenseIsPassedOver) {
  PsMetrics other = ps({});
  other.task.index = 5;
  TrainerMetrics nobody{
      .task = {.job = net::Job::kWorker, .index = 9}, .process = {}, .isa = "avx2", .samples = {}};
  const auto read = records([&](RunMonitor& monitor) {
    monitor.told(0, {"", "{", to_json(other), to_json(nobody), to_json(ps({}))});
    monitor.told(3, {to_json(ps({}))});
  });
  EXPECT_THAT(of_kind(read, "metrics", "task"), ElementsAre("ps:0"));
}

TEST_F(RunMonitorTest, AProgramWithAnotherFingerprintIsRecordedOnce) {
  TrainerMetrics trainer{.task = {.job = net::Job::kWorker, .index = 1},
                         .process = {},
                         .isa = {},
                         .samples = {},
                         .fingerprint = {{"threads", "1"}, {"torch", "2.9"}}};
  const auto read = records(
      [&](RunMonitor& monitor) {
        monitor.told(0, {to_json(trainer)});
        trainer.fingerprint["threads"] = "2";
        monitor.told(0, {to_json(trainer)});
        monitor.told(0, {to_json(trainer)});
        trainer.fingerprint.clear();  // of an older version, or of no program
        monitor.told(0, {to_json(trainer)});
      },
      {.fingerprint = {{"threads", "1"}, {"torch", "2.9"}}});
  EXPECT_THAT(of_kind(read, "event", "text"),
              ElementsAre("The program of worker:1 may compute other bits than that of worker:0, "
                          "the chief: threads is 2, it is 1 there"));
}

TEST_F(RunMonitorTest, AFullPipeBlocksNoThread) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC), 0);
  const std::string rubbish(4096, 'x');
  while (::write(ends[1], rubbish.data(), rubbish.size()) > 0) {
  }
  const auto read =
      records([](RunMonitor& monitor) { monitor.made(1, 0.5); }, {.progress_fd = ends[1]});
  EXPECT_THAT(of_kind(read, "step", "step"), Contains("1")) << "others have it all the same";
  close(ends[0]);
  close(ends[1]);
}

TEST_F(RunMonitorTest, RecordsLieBelowTheTrainDir) {
  const data::test::ScratchDirectory scratch;
  records([](RunMonitor& monitor) { monitor.made(1, 0.5); }, {.train_dir = scratch.path()});
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(scratch.path() / "records")) {
    files.push_back(entry.path());
  }
  ASSERT_EQ(files.size(), 1U);
  std::ifstream file(files[0]);
  std::string line;
  ASSERT_TRUE(std::getline(file, line));
  EXPECT_EQ(Json::parse(line)["kind"], "step");
}

TEST_F(RunMonitorTest, ATimelineOfARunThatEndsIsNone) {
  RunMonitor::Options options;
  std::mutex mutex;
  std::condition_variable wake;
  bool is_taken = false;
  options.take_trace_request = [&, asked = false]() mutable {
    const std::scoped_lock lock(mutex);
    is_taken = true;
    wake.notify_all();
    return std::exchange(asked, true) ? 0U : 50U;
  };
  const auto read = records(
      [&](RunMonitor&) {
        std::unique_lock lock(mutex);
        wake.wait(lock, [&] { return is_taken; });
      },
      options);
  EXPECT_THAT(of_kind(read, "trace", "why_not"), ElementsAre("the run has ended meanwhile"));
}

TEST_F(RunMonitorTest, NumbersOfAProgramAreTold) {
  const auto read = records([](RunMonitor& monitor) {
    for (std::uint64_t step = 1; step <= 3; ++step) {
      monitor.made(
          step, 0.5,
          math::ToldNumbers{{"norm", 2.0 * static_cast<double>(step)}, {"bad", std::nan("")}});
    }
    math::Evaluation told{.loss = 0.25, .is_told = true, .told = {{"f1", 0.75}}};
    monitor.evaluated(3, told, told, /*is_last=*/true);
  });
  EXPECT_THAT(of_kind(read, "step", "numbers"),
              ElementsAre(R"({"bad":null,"norm":2.0})", R"({"bad":null,"norm":4.0})",
                          R"({"bad":null,"norm":6.0})"));
  EXPECT_THAT(of_kind(read, "evaluation", "validation"),
              ElementsAre(R"({"loss":0.25,"numbers":{"f1":0.75}})"));
  for (const Json& record : read) {
    EXPECT_FALSE(record.contains("test")) << "a program evaluates once";
  }
}

TEST_F(RunMonitorTest, NumbersThatHaveNoRoomAreLeftOut) {
  math::ToldNumbers numbers;
  for (char name = 'A'; name < 'A' + 32; ++name) {
    numbers.emplace_back(std::string(1, name) + std::string(63, '\x01'), 1e-300 / 3);
  }
  math::Evaluation told{.is_told = true, .told = numbers};
  std::vector<std::string> lines = {StepRecord{.step = 1, .numbers = numbers}.to_line(1),
                                    EvaluationRecord{.validation = &told}.to_line(1)};
  for (const std::string& line : lines) {
    EXPECT_LE(line.size(), kMaxRecordBytes);
    EXPECT_GT(line.size(), kMaxRecordBytes - 500) << "as many as there is room for";
  }
}

// A stage that no program measures is not 0.
TEST_F(RunMonitorTest, AProgramHasNoForwardStage) {
  const TrainerMetrics trainer{.task = {.job = net::Job::kWorker, .index = 1},
                               .process = {},
                               .isa = "avx2",
                               .samples = {{.step = 1, .seconds = {1, 2, 0, 3, 4, 5, 0}}}};
  const auto stages = [&] {
    const auto read = records([&](RunMonitor& monitor) { monitor.told(0, {to_json(trainer)}); });
    return Json::parse(of_kind(read, "metrics", "stages").at(0));
  };
  EXPECT_TRUE(stages().contains("forward"));
  config_.model.variables = {{.name = "w", .shape = {3}}};
  EXPECT_FALSE(stages().contains("forward"));
  EXPECT_EQ(stages().at("backward"), 3.0);
}

TEST_F(RunMonitorTest, ARunOfAProgramIsDescribed) {
  config_.dataset = "mnist-v1";
  config_.model.variables = {{.name = "w", .shape = {3}}, {.name = "b", .shape = {}}};
  const auto read = records([this](RunMonitor& monitor) {
    monitor.begins({.config = &config_, .ps = 1, .model = "program", .parameters = 4});
  });
  EXPECT_THAT(of_kind(read, "run", "dataset"), ElementsAre("mnist-v1"));
  EXPECT_EQ(Json::parse(of_kind(read, "run", "settings").at(0)).at("model"),
            "program of 2 variables");
}

// Records of pictures: which images are selected, what is recorded about them, and that each is a
// picture of its own.

class WrongPictures : public testing::Test {
 protected:
  // Every second answer is wrong.
  WrongPictures() {
    data_.shape = {.height = 28, .width = 28, .channels = 1};
    data_.classes = 3;
    data_.class_names = names_;
    data_.test = {.images = images_, .labels = labels_};
    for (std::size_t row = 0; row < kRows; ++row) {
      labels_[row] = 1;
      test_.answers.push_back(row % 2 == 0 ? 1 : 2);
    }
  }

  static constexpr std::size_t kRows = 100;
  std::vector<std::uint8_t> images_ = std::vector<std::uint8_t>(kRows * 28 * 28, 7);
  std::vector<std::uint8_t> labels_ = std::vector<std::uint8_t>(kRows);
  std::vector<std::string_view> names_ = {"cat", "dog"};
  data::Dataset data_;
  math::Evaluation test_;
};

TEST_F(WrongPictures, AreTheFirstOnesWithWhatTheyAreAndAreTakenFor) {
  const std::vector<std::string> lines = wrong_picture_lines(data_, test_, 12, 3.5);
  ASSERT_EQ(lines.size(), kMostWrongPictures);
  for (std::size_t each = 0; each < lines.size(); ++each) {
    const Json record = Json::parse(lines[each]);
    EXPECT_EQ(record.at("set"), "wrong");
    EXPECT_EQ(record.at("step"), 12);
    EXPECT_EQ(record.at("index"), each);
    EXPECT_EQ(record.at("label"), "dog");
    EXPECT_EQ(record.at("answer"), "2") << "a class without a name is its number";
    EXPECT_EQ(record.at("png").get<std::string>().substr(0, 11), "iVBORw0KGgo");
  }
  test_.answers.assign(kRows, 3);
  EXPECT_EQ(Json::parse(wrong_picture_lines(data_, test_, 1, 1)[0]).at("answer"), "none");
  test_.answers.assign(kRows, 1);
  EXPECT_TRUE(wrong_picture_lines(data_, test_, 1, 1).empty());
}

TEST_F(WrongPictures, AreNotThereOfWhatIsNoPicture) {
  data_.shape.channels = 2;
  EXPECT_TRUE(wrong_picture_lines(data_, test_, 1, 1).empty());
  data_.shape.channels = 1;
  data_.test.images = {};
  EXPECT_TRUE(wrong_picture_lines(data_, test_, 1, 1).empty());
}

TEST_F(WrongPictures, OfImagesTooLargeForARecordAreLeftOut) {
  for (std::size_t each = 0; each < images_.size(); ++each) {  // hard to compress
    images_[each] = static_cast<std::uint8_t>((each * 2'654'435'761U) >> 13U);
  }
  data_.shape = {.height = 112, .width = 112, .channels = 1};
  test_.answers.resize(4);
  for (const std::string& line : wrong_picture_lines(data_, test_, 1, 1)) {
    EXPECT_LE(line.size(), kMaxRecordBytes);
  }
}

TEST(FilterPictures, AreOneOfEachUnit) {
  const math::ModelSpec spec{.hidden = {7}};
  const math::Model model(spec, 1, math::Isa::kGeneric);
  std::vector<float> parameters(model.layout().size());
  model.initialize(1, parameters);
  const std::vector<std::string> lines =
      filter_picture_lines(spec, model.layout(), parameters, 5, 1);
  ASSERT_EQ(lines.size(), 7U);
  EXPECT_EQ(Json::parse(lines[6]).at("index"), 6);
  EXPECT_NE(Json::parse(lines[5]).at("png"), Json::parse(lines[6]).at("png"));
}

// The weights of a user's program are in an order that it alone has.
TEST(FilterPictures, AreNotMadeOfAProgram) {
  const math::ModelSpec spec{.variables = {{.name = "w", .shape = {784, 7}}}};
  const math::ParameterLayout layout = math::layout_of(spec);
  const std::vector<float> parameters(layout.size());
  EXPECT_TRUE(filter_picture_lines(spec, layout, parameters, 5, 1).empty());
}

}  // namespace
}  // namespace disttf::roles
