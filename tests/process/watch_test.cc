// `status --watch` and `top`, with and without a terminal: their display, their exit, and the
// terminal's state afterwards.
#include <asio/io_context.hpp>
#include <asio/local/stream_protocol.hpp>
#include <asio/post.hpp>
#include <csignal>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "net/http/http_responder.h"
#include "tests/process/process_test.h"
#include "tests/process/terminal.h"

namespace disttf::test_process {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::ordered_json;

// A stand-in for a launch: it sends the responses that the test sets.
class FakeLaunch {
 public:
  explicit FakeLaunch(std::string path)
      : path_(std::move(path)), server_(context_, [this](const net::HttpServerRequest& request) {
          const std::lock_guard lock(mutex_);
          const std::string& answer = request.path == "/v1/status" ? status_ : run_;
          return answer.empty()
                     ? net::error_reply(404, "there is no such path")
                     : net::HttpReply{.content_type = "application/json", .body = answer};
        }) {
    server_.listen(asio::local::stream_protocol::acceptor(context_, {path_}),
                   {.use = net::HttpUse::kCommand});
    set_step(821);
    thread_ = std::thread([this] { context_.run(); });
  }
  ~FakeLaunch() { end(); }
  FakeLaunch(const FakeLaunch&) = delete;
  FakeLaunch& operator=(const FakeLaunch&) = delete;

  // An orderly end: removes the socket's name.
  void end() {
    if (thread_.joinable()) {
      std::filesystem::remove(path_);
      die();
    }
  }
  // An end like that of kill -9.
  void die() {
    asio::post(context_, [this] { server_.stop(); });
    thread_.join();
  }

  void set_step(int step, const std::string& state = "running") {
    Json status = Json::parse(R"({"state": "training", "pid": 4711, "since": "T1",
      "train_steps": 4000, "loss": 0.25, "tasks": [
        {"task": "ps:0", "address": "127.0.0.1:40941", "state": "running", "pid": 8194,
         "restarts": 0, "since": "T2"},
        {"task": "worker:0", "address": "127.0.0.1:40942", "pid": 8195, "restarts": 0,
         "since": "T3"}]})");
    status["step"] = step;
    status["tasks"][1]["state"] = state;
    const std::lock_guard lock(mutex_);
    status_ = status.dump();
  }
  void set_run(const std::string& run) {
    const std::lock_guard lock(mutex_);
    run_ = run;
  }

 private:
  std::string path_;
  std::mutex mutex_;
  std::string status_;  // guarded by mutex_
  std::string run_;     // guarded by mutex_; empty: the path does not exist
  asio::io_context context_;
  net::HttpResponder server_;
  std::thread thread_;
};

const char* const kRunView = R"({
  "now": {"images_per_second": 20000},
  "series": {"loss": {"steps": [1, 2, 3], "times": [1, 2, 3], "values": [3, 2, 1]}},
  "frontier": {"step_seconds": 0.01,
               "slowest": {"task": "worker:0", "stage": "backward", "slower": 0.41}},
  "tasks": [{"task": "worker:0", "time": 1, "step": 820, "doing": "computes", "rss_bytes": 34100000,
             "cpu_seconds": 1, "bytes_sent": 0, "bytes_received": 0,
             "wait_share": 0.25}]})";

class Watch : public ProcessTest {
 protected:
  std::string socket() const { return scratch() / "launch.sock"; }
  TerminalOptions on_terminal(const Words& words, std::uint16_t columns = 80) const {
    return {.program = disttf_binary(),
            .arguments = words + Words{"--control=" + socket()},
            .environment = {{"TERM", "xterm"}, {"LANG", "C.UTF-8"}},
            .columns = columns};
  }
  Process& without_terminal(const Words& words) {
    return run(words.front(), words + Words{"--control=" + socket()});
  }
};

const Words kTop = {"top", "--every=0.05"};
const Words kStatus = {"status", "--watch=0.05"};

TEST_F(Watch, TopDrawsTheRunAndItsTasks) {
  FakeLaunch launch(socket());
  launch.set_run(kRunView);
  ProgramOnTerminal top(on_terminal(kTop));
  ASSERT_TRUE(top.shows("worker:0  running"));
  EXPECT_THAT(
      top.screen().lines(),
      ElementsAre("launch 4711: training, step 821 of 4000 (21 %), 20000 images/s, 0:32 left",
                  "loss 0.2500 █▅▁", "worker:0 is 41 % slower: backward",
                  "TASK      STATE    STEP  WAIT %  RSS    CPU %  DOING",
                  "ps:0      running  -     -       -      -      -",
                  "worker:0  running  820   25      34 MB  -      computes"));
  EXPECT_TRUE(top.screen().is_other_screen());
  EXPECT_FALSE(top.screen().has_cursor());
  launch.set_step(900);
  EXPECT_TRUE(top.shows("step 900 of 4000"));
}

TEST_F(Watch, CtrlCLeavesTheTerminalAsItWas) {
  const FakeLaunch launch(socket());
  for (const Words& words : {kTop, kStatus}) {
    ProgramOnTerminal watcher(on_terminal(words));
    ASSERT_TRUE(watcher.shows("worker:0"));
    EXPECT_FALSE(watcher.is_left_as_it_was());
    watcher.type("\x03");
    EXPECT_EQ(watcher.wait().exit_code, kExitInterrupted);
    EXPECT_TRUE(watcher.is_left_as_it_was());
  }
}

TEST_F(Watch, SignalsLeaveTheTerminalAsItWas) {
  const FakeLaunch launch(socket());
  for (const int signal : {SIGTERM, SIGQUIT, SIGHUP}) {
    ProgramOnTerminal top(on_terminal(kTop));
    ASSERT_TRUE(top.shows("worker:0"));
    EXPECT_FALSE(top.echoes());
    kill(top.pid(), signal);
    EXPECT_EQ(top.wait().exit_code, 128 + signal);
    EXPECT_TRUE(top.is_left_as_it_was());
  }
}

TEST_F(Watch, TopEndsWithQ) {
  const FakeLaunch launch(socket());
  for (const char* const key : {"q", "Q", "xq"}) {
    ProgramOnTerminal top(on_terminal(kTop));
    ASSERT_TRUE(top.shows("worker:0"));
    top.type(key);
    EXPECT_EQ(top.wait().exit_code, kExitDone);
    EXPECT_TRUE(top.is_left_as_it_was());
  }
}

TEST_F(Watch, OtherKeysDoNothingAndAreNotShown) {
  FakeLaunch launch(socket());
  ProgramOnTerminal top(on_terminal(kTop));
  ASSERT_TRUE(top.shows("worker:0"));
  top.type("xyz\n");
  launch.set_step(900);
  ASSERT_TRUE(top.shows("step 900 of 4000"));
  top.type("\x1bOQ");  // F2
  // Keys are processed between two polls.
  for (const int step : {901, 902, 903}) {
    launch.set_step(step);
    ASSERT_TRUE(top.shows("step " + std::to_string(step) + " of 4000"));
  }
  EXPECT_THAT(top.bytes(), Not(HasSubstr("xyz")));
}

TEST_F(Watch, KeysAreHeardAgainAfterAStop) {
  const FakeLaunch launch(socket());
  for (const int stop : {SIGTSTP, SIGSTOP}) {
    ProgramOnTerminal top(on_terminal(kTop));
    ASSERT_TRUE(top.shows("worker:0"));
    kill(top.pid(), stop);
    ASSERT_TRUE(top.wait_until_stopped());
    EXPECT_EQ(top.echoes(), stop == SIGTSTP);
    top.set_line_mode();
    kill(top.pid(), SIGCONT);
    top.type("q");
    EXPECT_EQ(top.wait().exit_code, kExitDone);
    EXPECT_TRUE(top.is_left_as_it_was());
  }
}

TEST_F(Watch, NoKeysAreReadWhereStandardInputIsNoTerminal) {
  const FakeLaunch launch(socket());
  TerminalOptions options = on_terminal({});
  options.arguments = {
      "-c", "exec " + disttf_binary() + " top --every=0.05 --control=" + socket() + " < /dev/zero"};
  options.program = "/bin/sh";
  ProgramOnTerminal top(options);
  ASSERT_TRUE(top.shows("worker:0"));
  EXPECT_TRUE(top.echoes());
  top.type("q\x03");
  EXPECT_EQ(top.wait().exit_code, kExitInterrupted);
  EXPECT_TRUE(top.is_left_as_it_was());
}

TEST_F(Watch, CtrlZGivesTheTerminalBackForAsLongAsItLasts) {
  const FakeLaunch launch(socket());
  ProgramOnTerminal top(on_terminal(kTop));
  ASSERT_TRUE(top.shows("worker:0"));
  top.type("\x1a");
  ASSERT_TRUE(top.wait_until_stopped());
  EXPECT_TRUE(top.wait_for([](const TerminalScreen& screen) { return !screen.is_other_screen(); }));
  EXPECT_TRUE(top.is_left_as_it_was());
  kill(top.pid(), SIGCONT);
  EXPECT_TRUE(top.wait_for([](const TerminalScreen& screen) { return screen.is_other_screen(); }));
  EXPECT_TRUE(top.shows("worker:0"));
}

TEST_F(Watch, TheEndOfTheRunIsTheEndAndStaysToBeRead) {
  for (const Words& words : {kTop, kStatus}) {
    FakeLaunch launch(socket());
    ProgramOnTerminal watcher(on_terminal(words));
    ASSERT_TRUE(watcher.shows("worker:0"));
    launch.end();
    EXPECT_EQ(watcher.wait().exit_code, kExitDone);
    EXPECT_TRUE(watcher.is_left_as_it_was());
    const std::vector<std::string> lines = watcher.screen().lines();
    ASSERT_EQ(lines.size(), words == kTop ? 6U : 5U);
    EXPECT_THAT(lines.front(), StartsWith("launch 4711: ended, step 821"));
    EXPECT_EQ(lines.back(), "launch 4711 has ended; step 821 of 4000 was the last one seen");
  }
}

TEST_F(Watch, ALaunchThatWasKilledIsToldApart) {
  FakeLaunch launch(socket());
  ProgramOnTerminal top(on_terminal(kTop));
  ASSERT_TRUE(top.shows("worker:0"));
  launch.die();
  EXPECT_EQ(top.wait().exit_code, kExitLostPeers);
  EXPECT_TRUE(top.is_left_as_it_was());
  EXPECT_THAT(top.bytes(), HasSubstr("does not answer any more: Connection refused"));
}

TEST_F(Watch, NarrowTerminalsHaveFewerColumnsUntilTheyAreWider) {
  FakeLaunch launch(socket());
  launch.set_run(kRunView);
  for (const Words& words : {kTop, kStatus}) {
    ProgramOnTerminal watcher(on_terminal(words, 40));
    ASSERT_TRUE(watcher.shows("TASK      STATE    STEP  WAIT %"));
    ASSERT_TRUE(watcher.shows("worker:0  running  820   25"));
    for (const std::string& line : watcher.screen().lines()) {
      EXPECT_LE(line.size(), 44U) << line;  // blocks of a curve have three bytes each
    }
    watcher.resize(120, 24);
    EXPECT_TRUE(watcher.shows(words == kTop ? "CPU %  DOING" : "RESTARTS  SINCE"));
  }
}

TEST_F(Watch, ColoursAreForThoseWhoWantThem) {
  FakeLaunch launch(socket());
  launch.set_run(kRunView);
  TerminalOptions options = on_terminal(kTop);
  ProgramOnTerminal coloured(options);
  ASSERT_TRUE(coloured.shows("computes"));
  EXPECT_THAT(coloured.bytes(), HasSubstr("\x1b[33mworker:0 is 41 % slower"));
  options.environment["NO_COLOR"] = "1";
  ProgramOnTerminal plain(options);
  ASSERT_TRUE(plain.shows("computes"));
  EXPECT_THAT(plain.bytes(), Not(HasSubstr("\x1b[33m")));
  EXPECT_THAT(plain.bytes(), Not(HasSubstr("\x1b[0m")));
}

TEST_F(Watch, ADumbTerminalGetsLinesAlone) {
  FakeLaunch launch(socket());
  TerminalOptions options = on_terminal(kTop);
  options.environment["TERM"] = "dumb";
  ProgramOnTerminal top(options);
  ASSERT_TRUE(top.shows("worker:0"));
  launch.end();
  EXPECT_EQ(top.wait().exit_code, kExitDone);
  EXPECT_THAT(top.bytes(), Not(HasSubstr("\x1b")));
}

TEST_F(Watch, WithoutATerminalStatusAddsWhatHasChanged) {
  FakeLaunch launch(socket());
  Process& status = without_terminal(kStatus);
  ASSERT_TRUE(says(status, "worker:0 +127.0.0.1:40942 +running"));
  launch.set_step(900);
  launch.set_step(950, "waiting");
  ASSERT_TRUE(says(status, "worker:0 +127.0.0.1:40942 +waiting"));
  launch.end();
  ASSERT_TRUE(exits(status, kExitDone));
  EXPECT_EQ(status.standard_output(),
            "launch 4711: training, step 821 of 4000, loss 0.2500, since T1\n"
            "TASK      ADDRESS          STATE    PID   RESTARTS  SINCE\n"
            "ps:0      127.0.0.1:40941  running  8194  0         T2\n"
            "worker:0  127.0.0.1:40942  running  8195  0         T3\n"
            "worker:0  127.0.0.1:40942  waiting  8195  0         T3\n"
            "launch 4711 has ended; step 950 of 4000 was the last one seen\n");
}

TEST_F(Watch, JsonIsAnObjectALine) {
  FakeLaunch launch(socket());
  launch.set_run(kRunView);
  Process& once = without_terminal({"top", "--once", "--json"});
  ASSERT_TRUE(exits(once, kExitDone));
  const Json json = Json::parse(once.standard_output());
  EXPECT_EQ(json.at("step"), 821);
  EXPECT_EQ(json.at("tasks").at(1).at("wait"), 0.25);
  Process& status = without_terminal(kStatus + Words{"--json"});
  ASSERT_TRUE(says(status, "\"step\":821"));
  launch.set_step(900);
  ASSERT_TRUE(says(status, "\"step\":900"));
  launch.end();
  ASSERT_TRUE(exits(status, kExitDone));
  const std::string out = status.standard_output();
  EXPECT_EQ(Json::parse(out.substr(out.rfind('\n', out.size() - 2) + 1)).at("state"), "ended");
}

TEST_F(Watch, TopOnceIsAPicture) {
  const FakeLaunch launch(socket());
  Process& top = without_terminal({"top", "--once"});
  ASSERT_TRUE(exits(top, kExitDone));
  EXPECT_THAT(top.standard_output(), EndsWith("TASK      STATE    STEP  WAIT %  RSS  CPU %  DOING\n"
                                              "ps:0      running  -     -       -    -      -\n"
                                              "worker:0  running  -     -       -    -      -\n"));
}

TEST_F(Watch, AMissingLaunchIsASentence) {
  Process& top = without_terminal(kTop);
  EXPECT_TRUE(exits(top, kExitError));
  EXPECT_TRUE(says(top, "no launch is running at"));
  Process& wrong = run("status", {"status", "--watch", "soon"});
  EXPECT_TRUE(exits(wrong, kExitUsage));
  EXPECT_TRUE(says(wrong, "--watch: \"soon\" is not a number of seconds above 0"));
}

TEST_F(Watch, OfARealLaunchEndsWithItsResult) {
  Process& launch = run("launch", Words{"launch", "--train_steps=150", "--debug_delay_ms=5",
                                        "--log_every=1", "--control=" + socket()} +
                                      data_flags());
  ASSERT_TRUE(says(launch, "\\[worker:1\\] .*training step 10 done"));
  // The run waits for this worker until both observers are connected.
  const auto worker = pid_of_task(launch.pid(), "worker:1");
  ASSERT_TRUE(worker);
  ASSERT_EQ(kill(*worker, SIGSTOP), 0);
  ProgramOnTerminal top(on_terminal(kTop, 120));
  EXPECT_TRUE(top.shows("worker:1  running"));
  Process& status = without_terminal(kStatus);
  EXPECT_TRUE(says(status, "worker:1"));
  ASSERT_EQ(kill(*worker, SIGCONT), 0);
  ASSERT_TRUE(exits(launch, kExitDone));
  EXPECT_EQ(top.wait().exit_code, kExitDone);
  EXPECT_TRUE(top.is_left_as_it_was());
  EXPECT_THAT(top.screen().lines().back(), HasSubstr(" has ended"));
  ASSERT_TRUE(exits(status, kExitDone));
  EXPECT_THAT(status.standard_output(), HasSubstr(" has ended"));
}

}  // namespace
}  // namespace disttf::test_process
