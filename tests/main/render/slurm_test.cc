// render slurm: runs the script with a stub for srun; its arguments are the step's tasks.
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/main/render/round_trip.h"
#include "tests/main/render/scripts.h"

namespace disttf::render {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// A job to which sbatch has assigned two nodes.
constexpr const char* kVariables = "SLURM_JOB_ID=259";
constexpr std::size_t kPortBase = 2222 + 259 % 256 * 64;

// The arguments of srun: its own options, and the command of every task.
struct Step {
  std::vector<std::string> options;
  std::vector<std::string> command;
};

Step step_of(const std::string& script) {
  const std::vector<std::string> words = words_given_to("srun", script, kVariables);
  const auto program = std::find_if(words.begin(), words.end(),
                                    [](const std::string& word) { return !word.starts_with("-"); });
  return {.options = {words.begin(), program}, .command = {program, words.end()}};
}

// Slurm assigns `per_node` ranks to each node in blocks, and sets variables accordingly.
std::vector<Started> started(const std::string& script, const std::vector<std::size_t>& per_node) {
  const Step step = step_of(script);
  std::string tasks_per_node;
  std::size_t total = 0;
  for (const std::size_t count : per_node) {
    tasks_per_node += (total == 0 ? "" : ",") + std::to_string(count);
    total += count;
  }
  EXPECT_THAT(script, HasSubstr("\n#SBATCH --ntasks=" + std::to_string(total) + "\n"));
  std::vector<Started> tasks;
  for (std::size_t node = 0; node < per_node.size(); ++node) {
    for (std::size_t local = 0; local < per_node[node]; ++local) {
      tasks.push_back(
          {.address = "n" + std::to_string(node + 9) + ":" + std::to_string(kPortBase + local),
           .words = {step.command.begin() + 1, step.command.end()},
           .environment = {
               {"SLURM_PROCID", std::to_string(tasks.size())},
               {"SLURM_LOCALID", std::to_string(local)},
               {"SLURM_NODEID", std::to_string(node)},
               {"SLURM_STEP_NUM_TASKS", std::to_string(total)},
               {"SLURM_STEP_NODELIST", "n[9-" + std::to_string(8 + per_node.size()) + "]"},
               {"SLURM_STEP_TASKS_PER_NODE", tasks_per_node},
               {"SLURM_DISTRIBUTION", "block"}}});
    }
  }
  return tasks;
}

TEST(RenderSlurm, GivesTheClusterThatWasAskedFor) {
  expect_one_cluster(started(rendered("slurm"), {2, 1}), {});
  expect_one_cluster(started(rendered("slurm --ps 2 --workers 5 --chief"), {4, 3, 1}),
                     {.ps = 2, .workers = 5, .chief = true});
}

TEST(RenderSlurm, WaitsForEveryTaskAndEndsWithTheFirstFailure) {
  const Step step = step_of(rendered("slurm --program /nfs/disttf"));
  EXPECT_THAT(step.options,
              testing::ElementsAre("--kill-on-bad-exit=1", "--wait=0", "--distribution=block"));
  EXPECT_EQ(step.command.front(), "/nfs/disttf");
}

TEST(RenderSlurm, HandsOnWhatAShellWouldTakeApart) {
  const auto tasks = started(rendered("slurm --data_dir=a'$b;`c`"), {3});
  EXPECT_EQ(options_of(tasks.front()).data.directory, "a'$b;`c`");
}

TEST(RenderSlurm, WritesResourcesAndPlacement) {
  const std::string script =
      rendered("slurm --name m --cpus 2 --memory 513 --placement partition=long,time=0:30:00");
  for (const char* line : {"job-name=m", "cpus-per-task=2", "mem-per-cpu=257M", "partition=long",
                           "time=0:30:00", "output=%x-%j.out"}) {
    EXPECT_THAT(script, HasSubstr(std::string("\n#SBATCH --") + line + "\n"));
  }
}

TEST(RenderSlurm, OptionsStandBeforeTheFirstCommand) {
  const std::string script = rendered("slurm --placement qos=a");
  EXPECT_LT(script.rfind("#SBATCH"), script.find("\nport_base="));
  EXPECT_THAT(script, StartsWith("#!/bin/bash\n"));
}

TEST(RenderSlurm, RefusesAPortFromWhichSomeJobWouldGetPortsBeyondTheLast) {
  EXPECT_EQ(render_refusal("slurm --port 49152"), "(accepted)");
  EXPECT_THAT(render_refusal("slurm --port 49153"),
              StartsWith("--port: \"49153\" is not low enough: jobs take 16384 ports"));
  // 100 workers and a ps, all of which may run on one node.
  EXPECT_EQ(render_refusal("slurm --workers 100 --port 49115"), "(accepted)");
  EXPECT_THAT(render_refusal("slurm --workers 100 --port 49116"), StartsWith("--port: \"49116\""));
}

TEST(RenderSlurm, RefusesWhatItHasNot) {
  EXPECT_THAT(render_refusal("slurm --cpus 1.5"), StartsWith("--cpus: \"1.5\" is not a whole"));
  EXPECT_THAT(render_refusal("slurm --image x"), StartsWith("--image: \"x\" is not allowed"));
  EXPECT_THAT(render_refusal("slurm --volumes /a:/b"), StartsWith("--volumes: \"/a\" is not"));
  EXPECT_THAT(render_refusal("slurm --ps_cpus 2"), StartsWith("--ps_cpus"));
  EXPECT_THAT(render_refusal("slurm --ps_port 2"), StartsWith("--ps_port: \"2\" is not allowed"));
  EXPECT_THAT(render_refusal("slurm --placement wrap=x"),
              StartsWith("--placement: \"wrap=x\" is not KEY=VALUE"));
}

}  // namespace
}  // namespace disttf::render
