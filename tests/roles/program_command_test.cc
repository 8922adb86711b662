#include "roles/launch/shell/program_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "net/resolvers/tf_config.h"

namespace disttf::roles {
namespace {

using testing::Contains;
using testing::ElementsAre;

using Words = std::vector<std::string>;

net::Cluster made_up_cluster() {
  net::Cluster cluster;
  cluster.ps = {{"127.0.0.1", 1001}, {"127.0.0.1", 1002}};
  cluster.workers = {{"127.0.0.1", 1003}, {"127.0.0.1", 1004}};
  return cluster;
}

const net::TaskId kWorker1{.job = net::Job::kWorker, .index = 1};

Words filled(const Words& words) {
  return fill_placeholders("COMMAND", words, made_up_cluster(), kWorker1);
}

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "(accepted)";
}

std::string refusal_of(const std::string& word) {
  return refusal([&word] { static_cast<void>(filled({word})); });
}

TEST(FillPlaceholders, KnowsTheFour) {
  EXPECT_THAT(
      filled({"--ps={ps_hosts}", "{worker_hosts}", "{job_name}", "{job_name}:{task_index}!"}),
      ElementsAre("--ps=127.0.0.1:1001,127.0.0.1:1002", "127.0.0.1:1003,127.0.0.1:1004", "worker",
                  "worker:1!"));
}

TEST(FillPlaceholders, LeavesAWordOneWord) {
  EXPECT_THAT(filled({"two words", "", "'$HOME' \"{job_name}\""}),
              ElementsAre("two words", "", "'$HOME' \"worker\""));
}

TEST(FillPlaceholders, TakesDoubledBracesForBraces) {
  EXPECT_THAT(filled({"{{}}", "{{job_name}}", "{{{job_name}}}", "{{\"index\": {task_index}}}"}),
              ElementsAre("{}", "{job_name}", "{worker}", "{\"index\": 1}"));
}

TEST(FillPlaceholders, RefusesWhatIsNoPlaceholder) {
  const std::string allowed =
      "; allowed are {ps_hosts}, {worker_hosts}, {job_name}, {task_index}, and {{ and }} for "
      "single braces";
  EXPECT_EQ(refusal_of("--i={index}"), "COMMAND: \"{index}\" in \"--i={index}\"" + allowed);
  EXPECT_EQ(refusal_of("{}"), "COMMAND: \"{}\" in \"{}\"" + allowed);
  EXPECT_EQ(refusal_of("{ps_hosts"), "COMMAND: a single { in \"{ps_hosts\"" + allowed);
  EXPECT_EQ(refusal_of("ps_hosts}"), "COMMAND: a single } in \"ps_hosts}\"" + allowed);
  EXPECT_EQ(refusal_of("{{{{{"), "COMMAND: a single { in \"{{{{{\"" + allowed);
}

TEST(SplitWords, SeparatesAtBlanksOutsideOfQuotes) {
  EXPECT_THAT(split_words("--initializer", "  mkdir -p\t'a  b'\n"),
              ElementsAre("mkdir", "-p", "a  b"));
  EXPECT_THAT(split_words("--initializer", "echo \"it's\" a'b'\"c\" ''"),
              ElementsAre("echo", "it's", "abc", ""));
}

TEST(SplitWords, KnowsNothingElseOfAShell) {
  EXPECT_THAT(split_words("--initializer", "echo $HOME;ls|wc \\n"),
              ElementsAre("echo", "$HOME;ls|wc", "\\n"));
}

TEST(SplitWords, RefusesAnOpenQuoteAndNoProgram) {
  EXPECT_EQ(refusal([] { static_cast<void>(split_words("--finalizer", "echo 'a")); }),
            "--finalizer: \"echo 'a\" has an unterminated quote");
  EXPECT_EQ(refusal([] { static_cast<void>(split_words("--finalizer", " ")); }),
            "--finalizer: \" \" names no program");
  EXPECT_EQ(refusal([] { static_cast<void>(split_words("--finalizer", "'' a")); }),
            "--finalizer: \"'' a\" names no program");
}

TEST(TaskVariables, AreThoseOfTfMesos) {
  const Words variables = task_variables(made_up_cluster(), kWorker1);
  EXPECT_THAT(variables, Contains("TFMESOS_PS_HOSTS=127.0.0.1:1001,127.0.0.1:1002"));
  EXPECT_THAT(variables, Contains("TFMESOS_WORKER_HOSTS=127.0.0.1:1003,127.0.0.1:1004"));
  EXPECT_THAT(variables, Contains("TFMESOS_JOB_NAME=worker"));
  EXPECT_THAT(variables, Contains("TFMESOS_TASK_INDEX=1"));
  EXPECT_THAT(variables, Contains("TFMESOS_DISTRIBUTED=1"));
}

TEST(TaskVariables, HaveATfConfigOfTheSameCluster) {
  const std::string variable = task_variables(made_up_cluster(), kWorker1).front();
  ASSERT_TRUE(variable.starts_with("TF_CONFIG="));
  const auto found = net::parse_tf_config(variable.substr(variable.find('=') + 1));
  ASSERT_TRUE(found);
  EXPECT_EQ(net::hash_of(found->cluster), net::hash_of(made_up_cluster()));
  EXPECT_EQ(found->task, kWorker1);
}

}  // namespace
}  // namespace disttf::roles
