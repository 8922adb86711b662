// `plot` and `show`: draws a recorded run.
#include <csignal>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tests/net/raw_http_client.h"
#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::ordered_json;

// Checks that the picture is XML and that its polylines match the JSON of the same plot: argv are
// the picture and the JSON. The scale of the axes is taken from the ticks.
constexpr const char* kCheck = R"(
import json, sys, xml.etree.ElementTree as tree
svg = '{http://www.w3.org/2000/svg}'
root = tree.parse(sys.argv[1]).getroot()
assert root.tag == svg + 'svg' and root.get('version') == '1.1', root.tag
lines = {}
for group in root.iter(svg + 'g'):
    axis = {}
    for text in group.iter(svg + 'text'):
        if text.get('text-anchor') == 'end':
            axis[float(text.get('y')) - 4] = float(text.text)
    (low, low_value), (high, high_value) = max(axis.items()), min(axis.items())
    right = {float(text.get('x')): float(text.text) for text in group.iter(svg + 'text')
             if text.get('text-anchor') == 'middle' and text.text.isdigit()}
    (left, left_step), (end, end_step) = min(right.items()), max(right.items())
    for line in group.iter(svg + 'polyline'):
        points = [tuple(map(float, each.split(','))) for each in line.get('points').split()]
        values = [low_value + (low - y) / (low - high) * (high_value - low_value)
                  for x, y in points]
        steps = [left_step + (x - left) / (end - left) * (end_step - left_step)
                 for x, y in points]
        lines[line.find(svg + 'title').text] = steps, values
series = json.load(open(sys.argv[2]))['runs'][0]['series']
assert set(lines) == set(series), (set(lines), set(series))
for name, each in series.items():
    steps, values = lines[name]
    assert len(values) == len(each['values']), name
    for got, value in zip(values, each['values']):
        assert abs(got - value) < 0.01 * max(1, abs(value)), (name, got, value)
    for got, step in zip(steps, each['steps']):
        assert abs(got - step) < 0.01 * step, (name, got, step)
print('all right:', len(lines), 'curves')
)";

class Plot : public ProcessTest {
 protected:
  std::string path(const std::string& name) const { return scratch() / name; }
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }
  std::string output_of(const Words& words) {
    Process& command = run(words.front(), words, {{"LANG", "C.UTF-8"}, {"TERM", "xterm"}});
    EXPECT_TRUE(exits(command, kExitDone));
    return command.standard_output();
  }
  void expect_refusal(const Words& words, int code, const std::string& sentence) {
    Process& command = run(words.front(), words);
    EXPECT_TRUE(exits(command, code));
    EXPECT_THAT(command.standard_error(), HasSubstr(sentence));
    EXPECT_EQ(command.standard_output(), "");
    EXPECT_EQ(count_of(command.standard_error(), "\n"), 1U);
  }
  void expect_same(const std::string& run_path, const std::string& curves) {
    output_of({"plot", run_path, "--output=" + path("run.svg")});
    file("run.json", output_of({"plot", run_path, "--json"}));
    Process& check = run_program("/usr/bin/python3",
                                 {"-c", kCheck, path("run.svg"), path("run.json")}, "python3");
    EXPECT_TRUE(exits(check, kExitDone));
    EXPECT_THAT(check.standard_output(), HasSubstr("all right: " + curves + " curves"));
  }
  std::string text_of(const std::string& name) const {
    std::ifstream in(path(name));
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

std::string step(int number, const std::string& loss) {
  return R"({"kind":"step","time":)" + std::to_string(100 + number) + R"(,"step":)" +
         std::to_string(number) + R"(,"loss":)" + loss + "}\n";
}

TEST_F(Plot, OfARunThatWasJustTrained) {
  const std::string metrics = path("metrics.jsonl");
  Process& job = run("launch", Words{"launch", "--train_steps=60", "--eval_every=10",
                                     "--metrics_file=" + metrics, "--control=none"} +
                                   data_flags());
  ASSERT_TRUE(exits(job, kExitDone));
  EXPECT_THAT(output_of({"plot", metrics}), HasSubstr("loss   ⣿ validation_loss\n"));
  expect_same(metrics, "2");
  const Json json = Json::parse(output_of({"plot", metrics, "--json", "--series=test_accuracy"}));
  const Json& series = json.at("runs").at(0).at("series").at("test_accuracy");
  EXPECT_THAT(series.at("steps"), ElementsAre(10, 20, 30, 40, 50, 60));
  EXPECT_NEAR(series.at("values").at(5), accuracy_in(job), 0.00006);
}

TEST_F(Plot, OfARunThatWasResumedHasEachStepOnce) {
  std::filesystem::create_directories(path("run/records"));
  file("run/records/1.jsonl", R"({"kind":"run","time":100,"step":0})"
                              "\n" +
                                  step(10, "3") + step(20, "2.5") + step(30, "9"));
  file("run/records/2.jsonl", R"({"kind":"run","time":140,"step":20})"
                              "\n"
                              R"({"kind":"step","time":150,"step":30,"loss":2})"
                              "\n"
                              R"({"kind":"step","time":160,"step":)");
  const Json json = Json::parse(output_of({"plot", path("run"), "--json"}));
  const Json& loss = json.at("runs").at(0).at("series").at("loss");
  EXPECT_THAT(loss.at("steps"), ElementsAre(10, 20, 30));
  EXPECT_THAT(loss.at("values"), ElementsAre(3, 2.5, 2));
  expect_same(path("run"), "1");
}

TEST_F(Plot, IsTheSameBytesEachTime) {
  const std::string records = file("a.jsonl", step(1, "1") + step(2, "0.5"));
  output_of({"plot", records, records, "-o", path("one.svg"), "--log"});
  output_of({"plot", records, records, "-o", path("two.svg"), "--log"});
  EXPECT_EQ(text_of("one.svg"), text_of("two.svg"));
  EXPECT_THAT(text_of("one.svg"), HasSubstr("stroke-dasharray"));
}

TEST_F(Plot, WhatIsWrongIsASentence) {
  const std::string good = file("good.jsonl", step(1, "1"));
  const std::string wrong = file("wrong.jsonl", step(1, "1") + step(2, "\"x\""));
  expect_refusal({"plot", wrong}, kExitUsage,
                 "wrong.jsonl, line 2: loss is \"\\\"x\\\"\"; expected a number, or null");
  expect_refusal({"plot", path("none")}, kExitError, "there is no such file or directory");
  std::filesystem::create_directories(path("empty"));
  expect_refusal({"plot", path("empty")}, kExitError, "contains no records of a run");
  expect_refusal({"plot", good, "--series=learning_rate"}, kExitError,
                 "--series: there is no learning_rate; there is loss");
  expect_refusal({"plot", good, "--series=speed"}, kExitUsage,
                 "--series: there is no speed; there is ");
  expect_refusal({"plot", good, "--series=loss,,"}, kExitUsage, "has an empty entry");
  expect_refusal({"plot", good, "--output=x.png"}, kExitUsage, "does not end in .svg");
  expect_refusal({"plot", good, "--smooth=0"}, kExitUsage, "--smooth");
  expect_refusal({"plot"}, kExitUsage, "the runs are missing");
  expect_refusal({"show"}, kExitUsage, "the run is missing");
  expect_refusal({"show", good, wrong}, kExitUsage,
                 "wrong.jsonl\" is a second run; only --page shows several");
  expect_refusal({"show", good, "--page", "--json"}, kExitUsage, "--json: not allowed with --page");
  expect_refusal({"show", good, "--page_port=80"}, kExitUsage,
                 "--page_port: has no effect without --page");
  expect_refusal(Words{"show"} + Words(17, good) + Words{"--page"}, kExitUsage,
                 "17 runs are too many; at most 16");
  expect_refusal({"show", good, wrong, "--page"}, kExitUsage, "wrong.jsonl, line 2: loss is");
  expect_refusal({"show", good, path("none"), "--page"}, kExitError, "there is no such file");
  expect_refusal({"plot", good, "--output=" + path("none/x.svg")}, kExitError,
                 "cannot create a file in");
}

TEST_F(Plot, FitsItsTerminal) {
  const std::string records = file("a.jsonl", step(1, "1") + step(200, "0.5"));
  Process& narrow = run("plot", {"plot", records}, {{"COLUMNS", "30"}, {"LC_ALL", "C"}});
  ASSERT_TRUE(exits(narrow, kExitDone));
  const std::string text = narrow.standard_output();
  EXPECT_THAT(text, HasSubstr("\n"));
  for (std::size_t begin = 0; begin < text.size(); begin = text.find('\n', begin) + 1) {
    EXPECT_LE(text.find('\n', begin) - begin, 30U);
  }
  EXPECT_TRUE(std::ranges::all_of(text, [](char c) { return c == '\n' || (c >= ' ' && c < 127); }));
}

TEST_F(Plot, ShowTellsWhatARunWas) {
  std::filesystem::create_directories(path("run/records"));
  file("run/records/1.jsonl",
       R"({"kind":"run","time":100,"step":0,"train_steps":20,"dataset":"Digits","model":"mlp",)"
       R"("settings":{"batch_size":7}})"
       "\n" +
           step(10, "3") + step(20, "2.5") +
           R"({"kind":"result","time":130,"step":20,"line":"Digits accuracy: 0.9000"})" + "\n");
  const std::string text = output_of({"show", path("run")});
  EXPECT_THAT(text, HasSubstr("Digits accuracy: 0.9000, step 20 of 20"));
  EXPECT_THAT(text, HasSubstr("batch_size  7\n"));
  EXPECT_EQ(Json::parse(output_of({"show", path("run"), "--json"})).at("result").at("step"), 20);
}

// A page that `show --page` serves.
class ShownPage : public Plot {
 protected:
  Process& show(const Words& words) {
    Process& command = run("show", Words{"show"} + words + Words{"--page"});
    EXPECT_TRUE(says(command, "the run's page is http://127.0.0.1:[0-9]+/$"));
    host_ = captured(command.standard_output(), "http://([^/]+)/");
    return command;
  }
  net::test::RawClient asked(const std::string& line, const std::string& fields = {}) const {
    net::test::RawClient client(
        static_cast<std::uint16_t>(std::stoul(host_.substr(host_.find(':') + 1))));
    client.write(line + " HTTP/1.1\r\nConnection: close\r\nHost: " + host_ + "\r\n" + fields +
                 "\r\n");
    return client;
  }
  Json told(const std::string& target) const {
    const std::string reply = asked("GET " + target).read();
    return Json::parse(reply.substr(reply.find("\r\n\r\n")));
  }

  std::string host_;
};

TEST_F(ShownPage, IsTheRunAsItGrows) {
  std::filesystem::create_directories(path("run/records"));
  file("run/records/1.jsonl", R"({"kind":"run","time":100,"step":0,"train_steps":20})"
                              "\n" +
                                  step(10, "3"));
  Process& command = show({path("run")});
  EXPECT_THAT(told("/v1/run").at("series").at("loss").at("steps"), ElementsAre(10));
  const net::test::RawClient reader = asked("GET /v1/stream");
  EXPECT_THAT(reader.read("\n\n"), HasSubstr("event: view"));
  std::ofstream(path("run/records/1.jsonl"), std::ios::app) << step(20, "2");
  EXPECT_THAT(reader.read("\n\n"), HasSubstr(R"("step":20,"loss":2)"));
  file("run/records/2.jsonl", step(30, "1"));  // the records of a restarted chief
  EXPECT_THAT(reader.read("\n\n"), HasSubstr(R"("step":30,"loss":1)"));
  std::ofstream(path("run/records/1.jsonl"), std::ios::app) << "nonsense\n" + step(40, "0.5");
  EXPECT_THAT(reader.read("\n\n"), HasSubstr(R"("step":40,"loss":0.5)"));
  EXPECT_THAT(told("/v1/run").at("series").at("loss").at("steps"), ElementsAre(10, 20, 30, 40));
  command.send(SIGINT);
  EXPECT_THAT(reader.read(), HasSubstr("event: end"));
  EXPECT_TRUE(exits(command, kExitInterrupted));
  EXPECT_THAT(command.standard_error(), HasSubstr("has new lines that are not records"));
}

TEST_F(ShownPage, NothingCanBeChangedFromIt) {
  const std::string records = file("a.jsonl", step(1, "1"));
  Process& command = show({records});
  EXPECT_EQ(told("/v1/access").at("verbs"), Json::array());
  EXPECT_THAT(asked("POST /v1/stop", "Origin: http://" + host_ + "\r\n").read(),
              StartsWith("HTTP/1.1 401 "));
  command.send(SIGTERM);
  EXPECT_TRUE(exits(command, kExitTerminated));
}

TEST_F(ShownPage, OfSeveralRunsHasThemAll) {
  const std::string first = file("a.jsonl", step(1, "1"));
  const std::string second = file("b.jsonl", step(1, "1") + step(2, "0.5"));
  show({first, second});
  const Json runs = told("/v1/access").at("runs");
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs.at(1).at("name"), second);
  EXPECT_EQ(runs.at(1).at("records"), 2);
  EXPECT_THAT(told("/v1/run?run=0").at("series").at("loss").at("steps"), ElementsAre(1));
  EXPECT_THAT(told("/v1/run?run=1").at("series").at("loss").at("steps"), ElementsAre(1, 2));
}

}  // namespace
}  // namespace disttf::test_process
