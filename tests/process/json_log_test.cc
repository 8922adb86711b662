// `disttf launch --log_format json`: every line on standard error is one JSON object.
#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

using nlohmann::json;

class JsonLog : public ProcessTest {
 protected:
  Process& launch(const Words& arguments) {
    return run("launch", Words{"launch", "--log_format=json"} + arguments);
  }
  // Returns the messages of `task`; fails on a line that is not a log line.
  static std::vector<std::string> messages_of(const std::string& task, const Process& job) {
    std::vector<std::string> messages;
    std::istringstream lines(job.standard_error());
    for (std::string line; std::getline(lines, line);) {
      const json object = json::parse(line, nullptr, /*allow_exceptions=*/false);
      EXPECT_TRUE(object.is_object()) << line;
      if (!object.is_object()) {
        continue;
      }
      for (const char* key : {"time", "level", "task", "message"}) {
        EXPECT_TRUE(object.contains(key) && object[key].is_string()) << key << ": " << line;
      }
      if (object.value("task", "") == task) {
        messages.push_back(object.value("level", "") + ": " + object.value("message", ""));
      }
    }
    return messages;
  }
};

using ::testing::Contains;
using ::testing::HasSubstr;

TEST_F(JsonLog, OfALaunchIsOneObjectALine) {
  Process& job = launch({"--train_steps=40", "--log_every=1", "--chaos=1,100", "--dataset=digits"});
  EXPECT_TRUE(exits(job, kExitDone));
  EXPECT_THAT(messages_of("launch", job), Contains(HasSubstr("info: chaos: seed 1")));
  EXPECT_THAT(messages_of("ps:0", job), Contains(HasSubstr("info: Started server")));
  EXPECT_THAT(messages_of("worker:0", job), Contains(HasSubstr("global step: 40,")));
  EXPECT_THAT(messages_of("worker:1", job), Contains(HasSubstr("info: Digits accuracy: 0.")));
  EXPECT_THAT(job.standard_output(), ::testing::StartsWith("After 40 training step(s)"));
}

// It is reported before the flags are parsed.
TEST_F(JsonLog, OfAWrongFlagIsAnObjectHoweverTheFormatIsSpelled) {
  for (const Words& format : {Words{"--log_format=json"}, Words{"--log_format", "json"},
                              Words{"--log-format=json"}, Words{"--log-format", "json"}}) {
    Process& job = run("worker", Words{"worker"} + format + Words{"--nope"});
    EXPECT_TRUE(exits(job, kExitUsage));
    EXPECT_THAT(messages_of("worker", job),
                Contains(HasSubstr("error: \"--nope\" is not a flag of disttf worker")));
  }
}

TEST_F(JsonLog, SaysOfATaskThatWasKilledWhatItIs) {
  Process& job = launch(endless() + Words{"--dataset=digits", "--restart=never"});
  ASSERT_TRUE(says(job, "training step 3 done"));
  kill(children_of(job.pid()).at(0), SIGKILL);
  EXPECT_TRUE(exits(job, kExitLostPeers));
  EXPECT_THAT(messages_of("launch", job),
              Contains("error: [ps:0] was killed by signal 9 (Killed); stopping the others"));
}

TEST_F(JsonLog, SaysOfAWrongFlagWhatItIs) {
  Process& job = launch({"--train_steps=none"});
  EXPECT_TRUE(exits(job, kExitUsage));
  EXPECT_THAT(messages_of("launch", job), Contains(HasSubstr("error: --train_steps: ")));
}

// Programs that do not support the JSON log.
TEST_F(JsonLog, WrapsWhatACommandPrints) {
  Process& job = launch({"--ps=0", "--workers=1", "--", "/bin/sh", "-c",
                         "echo a result; echo 'no \"JSON\"' >&2; echo '{{\"a\": 1}}' >&2; "
                         "printf 'wrong \\377\\n' >&2; exit 3"});
  EXPECT_TRUE(exits(job, 3));
  EXPECT_EQ(job.standard_output(), "[worker:0] a result\n");
  const std::vector<std::string> messages = messages_of("worker:0", job);
  EXPECT_THAT(messages, Contains("info: no \"JSON\""));
  EXPECT_THAT(messages, Contains("info: {\"a\": 1}"));
  EXPECT_THAT(messages, Contains(HasSubstr("info: wrong ")));
  EXPECT_THAT(messages_of("launch", job),
              Contains("warning: [worker:0] ended with exit code 3; stopping the others"));
}

}  // namespace
}  // namespace disttf::test_process
