// render tfmesos: runs the script with a stub for tfrun, and starts the tasks of its arguments like
// TFMesos.
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/main/render/round_trip.h"
#include "tests/main/render/scripts.h"

namespace disttf::render {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

struct Tfrun {
  std::vector<std::string> options;
  std::vector<std::string> command;
};

Tfrun tfrun_of(const std::string& script) {
  const std::vector<std::string> words = words_given_to("tfrun", script);
  const auto dashes = std::find(words.begin(), words.end(), "--");
  return {.options = {words.begin(), dashes}, .command = {dashes + 1, words.end()}};
}

std::size_t number_behind(const Tfrun& tfrun, const std::string& option) {
  return std::stoul(*(std::find(tfrun.options.begin(), tfrun.options.end(), option) + 1));
}

std::string list(const std::string& host, std::size_t count, std::size_t port) {
  std::string text;
  for (std::size_t each = 0; each < count; ++each) {
    text += (each == 0 ? "" : ",") + host + ":" + std::to_string(port + each);
  }
  return text;
}

// TFMesos joins the arguments with spaces and would replace braces; a shell splits them again;
// variables identify the task.
std::vector<Started> started(const std::string& script) {
  const Tfrun tfrun = tfrun_of(script);
  std::string joined;
  for (const std::string& word : tfrun.command) {
    joined += (joined.empty() ? "" : " ") + word;
    EXPECT_EQ(word.find_first_of("{}'\"$ *?;&|<>()\\"), std::string::npos) << word;
  }
  const std::size_t ps = number_behind(tfrun, "-s");
  const std::size_t workers = number_behind(tfrun, "-w");
  std::vector<Started> tasks;
  for (std::size_t each = 0; each < ps + workers; ++each) {
    const bool is_ps = each < ps;
    const std::size_t index = is_ps ? each : each - ps;
    tasks.push_back({.address = (is_ps ? "a:" : "b:") + std::to_string(40000 + index),
                     .words = {tfrun.command.begin() + 1, tfrun.command.end()},
                     .environment = {{"TFMESOS_PS_HOSTS", list("a", ps, 40000)},
                                     {"TFMESOS_WORKER_HOSTS", list("b", workers, 40000)},
                                     {"TFMESOS_JOB_NAME", is_ps ? "ps" : "worker"},
                                     {"TFMESOS_TASK_INDEX", std::to_string(index)},
                                     {"TFMESOS_DISTRIBUTED", "1"}}});
  }
  return tasks;
}

TEST(RenderTfmesos, GivesTheClusterThatWasAskedFor) {
  expect_one_cluster(started(rendered("tfmesos")), {});
  expect_one_cluster(started(rendered("tfmesos --ps 2 --workers 11 --train_steps 7")),
                     {.ps = 2, .workers = 11});
}

TEST(RenderTfmesos, WritesResourcesAndVolumes) {
  const Tfrun tfrun = tfrun_of(
      rendered("tfmesos --name m --cpus 1.5 --ps_cpus 1 --memory 512 --gpus 1 --volumes /a:/b"));
  EXPECT_THAT(tfrun.options, ElementsAre("-n", "m", "-w", "2", "-s", "1", "-Cw", "1.5", "-Gw", "1",
                                         "-Mw", "512", "-Cs", "1", "-Ms", "512", "-V", "/a:/b"));
}

TEST(RenderTfmesos, RefusesWhatTfrunWouldChange) {
  EXPECT_THAT(render_refusal("tfmesos --data_dir {x}"), StartsWith("--data_dir: "));
  EXPECT_THAT(render_refusal("tfmesos --data_dir a'b"), StartsWith("--data_dir: "));
  EXPECT_THAT(render_refusal("tfmesos --chief"), StartsWith("--chief: \"true\" is not allowed"));
  EXPECT_THAT(render_refusal("tfmesos --volumes /a:/b:ro"), HasSubstr("is not writable"));
  EXPECT_THAT(render_refusal("tfmesos --workers 0 --chief"), StartsWith("--chief: "));
}

}  // namespace
}  // namespace disttf::render
