// render kelda: node runs the blueprint with a stub of the kelda package that names containers like
// Kelda; the test starts the tasks that it deploys.
#include <gmock/gmock.h>

#include "tests/main/render/round_trip.h"
#include "tests/main/render/scripts.h"

namespace disttf::render {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// A second container of the same name gets the number 2.
constexpr const char* kStandIn = R"(
const names = {};
const deployed = [];
const allowed = [];
class Container {
  constructor(options) {
    Object.assign(this, options);
    names[this.name] = (names[this.name] || 0) + 1;
    this.hostname = this.name + (names[this.name] > 1 ? names[this.name] : '');
  }
  getHostname() { return this.hostname; }
  deploy(infra) {
    if (infra !== 'infra') throw new Error('deployed to something else');
    deployed.push({ host: this.hostname, image: this.image, command: this.command });
  }
}
const namesOf = list => (Array.isArray(list) ? list.map(each => each.hostname) : list);
module.exports = {
  Container,
  publicInternet: 'internet',
  baseInfrastructure: () => 'infra',
  allowTraffic: (from, to, port) => allowed.push({ from: namesOf(from), to: namesOf(to), port }),
};
process.on('exit', () => console.log(JSON.stringify({ deployed, allowed })));
)";

class RenderKelda : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_program("node")) {
      GTEST_SKIP() << "node is not installed here, so the blueprint cannot be run";
    }
  }

  // Returns what the blueprint deploys and allows.
  json run(const std::string& line) {
    scratch_.write("node_modules/kelda/index.js", kStandIn);
    const std::string file = scratch_.write("main.js", rendered("kelda " + line));
    const Ran checked = run_shell("node --check " + file);
    EXPECT_EQ(checked.exit_code, 0) << checked.output;
    const Ran ran = run_shell("node " + file);
    EXPECT_EQ(ran.exit_code, 0) << ran.output;
    return json::parse(ran.output);
  }

 private:
  ScratchDirectory scratch_;
};

std::vector<Started> kelda_tasks(const json& all) {
  std::vector<Started> tasks;
  for (const json& container : all.at("deployed")) {
    std::vector<std::string> words = texts(container["command"]);
    EXPECT_EQ(words.at(0), "/disttf");
    words.erase(words.begin());
    tasks.push_back({.address = std::string(container["host"]) + ":2222", .words = words});
  }
  return tasks;
}

TEST_F(RenderKelda, GivesTheClusterThatWasAskedFor) {
  expect_one_cluster(kelda_tasks(run("")), {});
  expect_one_cluster(kelda_tasks(run("--ps 2 --workers 11 --chief")),
                     {.ps = 2, .workers = 11, .chief = true});
  expect_one_cluster(kelda_tasks(run("--workers 0 --chief")), {.workers = 0, .chief = true});
}

TEST_F(RenderKelda, LetsTasksTalkAndFetchTheData) {
  const json all = run("--port 5000 --workers 1");
  ASSERT_EQ(all["allowed"].size(), 2U);
  EXPECT_EQ(all["allowed"][0],
            json::parse(R"({"from": ["ps-0", "worker-0"], "to": ["ps-0", "worker-0"],
                            "port": 5000})"));
  EXPECT_EQ(all["allowed"][1]["to"], "internet");
  EXPECT_EQ(run("--dataset digits")["allowed"].size(), 1U);
}

TEST_F(RenderKelda, KeepsTextAsItIs) {
  for (const Started& task : kelda_tasks(run("--data_dir=a'`${x}\\\"</script>"))) {
    EXPECT_EQ(options_of(task).data.directory, "a'`${x}\\\"</script>");
  }
}

TEST_F(RenderKelda, TasksStayUp) {
  for (const Started& task : kelda_tasks(run("--train_steps 7"))) {
    EXPECT_EQ(options_of(task).task.on_finish, roles::OnFinish::kIdle);
    EXPECT_EQ(options_of(task).config.train_steps, 7U);
  }
}

TEST(RenderKeldaRefuses, WhatItHasNot) {
  EXPECT_THAT(render_refusal("kelda --cpus 1"), StartsWith("--cpus: \"1\" is not allowed"));
  EXPECT_THAT(render_refusal("kelda --memory 1"), StartsWith("--memory: \"1\" is not allowed"));
  EXPECT_THAT(render_refusal("kelda --volumes /a:/b"), StartsWith("--volumes: \"/a\" is not"));
  EXPECT_THAT(render_refusal("kelda --gpus 1"), StartsWith("--gpus: \"1\" is not allowed"));
}

}  // namespace
}  // namespace disttf::render
