// Managing a running launch: status, endpoints, logs, pods and update, as programs, and attacks of
// unauthenticated peers on its control address.
#include <sys/stat.h>

#include <asio/connect.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/local/stream_protocol.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>
#include <csignal>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using Json = nlohmann::json;

const Words kRun = {"--train_steps=150", "--workers=2", "--print_weights_hash"};
const Words kSlowly = {"--debug_delay_ms=20", "--log_every=1"};

// Writes `text` to a connection and reads until its end.
template <class Socket>
std::string answer_to(Socket& socket, const std::string& text) {
  std::error_code error;
  asio::write(socket, asio::buffer(text), error);
  std::string answer;
  asio::read(socket, asio::dynamic_buffer(answer), error);
  return answer;
}

// Returns the response to a browser that opens http://127.0.0.1:PORT/...
std::string opened(const std::string& link) {
  const std::string host = captured(link, "http://([^/]+)/");
  asio::io_context context;
  asio::ip::tcp::socket socket(context);
  socket.connect({asio::ip::address_v4::loopback(),
                  static_cast<asio::ip::port_type>(std::stoul(host.substr(host.find(':') + 1)))});
  return answer_to(socket, "GET " + link.substr(link.find(host) + host.size()) +
                               " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n");
}

class Manage : public ProcessTest {
 protected:
  Process& launch(const Words& arguments) {
    return run("launch", Words{"launch"} + arguments + data_flags(), where_);
  }
  // Starts a launch and waits until all workers train.
  Process& launch_slowly(const Words& arguments = {}) {
    Process& job = launch(kRun + kSlowly + arguments);
    EXPECT_TRUE(says(job, "\\[worker:1\\] .*training step 10 done"));
    return job;
  }
  Process& tell(const Words& words) { return run(words.front(), words, where_); }
  // Returns a command's output; the command must exit with 0.
  std::string told(const Words& words) {
    Process& command = tell(words);
    EXPECT_TRUE(exits(command, kExitDone));
    return command.standard_output();
  }
  Json status() { return Json::parse(told({"status", "--json"})); }
  // Expects exit code `code` and the message.
  void expect_refusal(const Words& words, int code, const std::string& sentence) {
    Process& command = tell(words);
    EXPECT_TRUE(exits(command, code));
    EXPECT_TRUE(says(command, sentence));
    EXPECT_EQ(command.standard_output(), "");
    EXPECT_EQ(count_of(command.standard_error(), "\n"), 1U);
  }
  void expect_undisturbed(Process& job, const Words& flags = kRun) {
    ASSERT_TRUE(exits(job, kExitDone));
    Process& undisturbed = launch(Words{"--control=none"} + flags);
    ASSERT_TRUE(exits(undisturbed, kExitDone));
    EXPECT_EQ(weights_hash_in(job), weights_hash_in(undisturbed));
    EXPECT_EQ(job.standard_output(), undisturbed.standard_output());
  }
  std::string file(const std::string& name, const std::string& text) {
    const std::string path = scratch() / name;
    std::ofstream(path) << text;
    return path;
  }
  std::filesystem::path directory() const { return scratch() / "disttf"; }
  std::string socket_of(const Process& job) const {
    return directory() / ("launch-" + std::to_string(job.pid()) + ".sock");
  }

  const Variables where_ = {{"XDG_RUNTIME_DIR", scratch().string()}};
};

TEST_F(Manage, StatusShowsEveryTask) {
  Process& job = launch(endless() + Words{"--ps=2", "--chief", "--workers=1"});
  ASSERT_TRUE(says(job, "\\[worker:0\\] .*training step 10 done"));
  EXPECT_THAT(told({"status"}),
              MatchesRegex("launch [0-9]+: training, step [0-9]+ of [0-9]+, loss [0-9.]+, since "
                           "[0-9TZ:-]+\n"
                           "TASK +ADDRESS +STATE +PID +RESTARTS +SINCE[^\n]*\n"
                           "ps:0 +127.0.0.1:[0-9]+ +running +[0-9]+ +0 +[0-9TZ:-]+[^\n]*\n"
                           "ps:1 +127.0.0.1:[0-9]+ +running +[0-9]+ +0 +[0-9TZ:-]+[^\n]*\n"
                           "chief:0 +127.0.0.1:[0-9]+ +running +[0-9]+ +0 +[0-9TZ:-]+[^\n]*\n"
                           "worker:0 +127.0.0.1:[0-9]+ +running +[0-9]+ +0 +[0-9TZ:-]+[^\n]*\n"));
  EXPECT_THAT(told({"endpoints"}),
              MatchesRegex("JOB +ADDRESSES\nps +127[^,\n]+,127[^,\n]+\nchief +127[^,\n]+\n"
                           "worker +127[^,\n]+\ncontrol +[^\n]+\\.sock\n"
                           "secret_file +[^\n]+\\.secret\n"));
  EXPECT_EQ(told({"pods", "list"}), "ps:0\nps:1\nchief:0\nworker:0\n");
}

TEST_F(Manage, PageIsALinkThatIsGoodForOneBrowser) {
  Process& job = launch(endless() + Words{"--page"});
  ASSERT_TRUE(says(job, "the run's page is http://"));
  const std::string line = told({"page"});
  const std::string first = captured(line, "^(http://127.0.0.1:[0-9]+/\\?token=[0-9a-f]{32})\n$");
  EXPECT_THAT(job.standard_error(), HasSubstr(first.substr(0, first.find('?')))) << "the same page";
  const std::string second = Json::parse(told({"page", "--json"})).at("url");
  for (const std::string& link : {first, second}) {
    EXPECT_THAT(opened(link), HasSubstr("Set-Cookie: "));
    EXPECT_THAT(opened(link), Not(HasSubstr("Set-Cookie: "))) << "the link is valid only once";
  }
}

TEST_F(Manage, WhoChangesSomethingIsInTheLog) {
  Process& job = launch(endless());
  ASSERT_TRUE(says(job, "\\[worker:1\\] .*training step 3 done"));
  Process& teller = tell({"pods", "restart", "worker-1"});
  EXPECT_TRUE(exits(teller, kExitDone));
  EXPECT_TRUE(says(job, "POST /v1/pods/worker:1/restart at the control address by uid " +
                            std::to_string(::getuid()) + ", pid " + std::to_string(teller.pid()) +
                            ": 20"));
}

// Each task becomes a program that connects to the control socket of its launch: directly, and once
// more as a process whose parent has ended.
TEST_F(Manage, TasksAndWhatTheyHaveStartedAreRefused) {
  const std::string ask = disttf_binary() + " pods restart ps-0";
  const std::string script = file("asks", "#!/bin/sh\n(" + ask + " &)\n" + ask + "\nsleep 60\n");
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  Process& job = launch(endless() + Words{"--confine=false", "--debug_attempts=exec:" + script});
  EXPECT_TRUE(says_times(job, 2, "\\[ps:0\\] .*may not use its control address"));
  EXPECT_TRUE(says(job, "POST /v1/pods/ps:0/restart at the control address by .*: 403"));
}

TEST_F(Manage, AnUpdateChangesNeitherConfinementNorFiles) {
  Process& job = launch(endless());
  ASSERT_TRUE(says(job, "\\[worker:1\\] .*training step 3 done"));
  const auto with = [this](const std::string& flags) {
    return "--options=" + file("x.json", R"({"service": {"job_context": "{)" + flags + R"(}"}})");
  };
  expect_refusal({"update", with(R"(\"confine\": false)")}, kExitError,
                 "--confine: cannot become false in this run");
  expect_refusal({"update", with(R"(\"metrics_textfile\": \"/x\")")}, kExitError,
                 "--metrics_textfile, .* cannot change in this run");
}

TEST_F(Manage, LogsAreOfTheTaskAlone) {
  launch_slowly();
  const std::string log = told({"logs", "worker-1"});
  EXPECT_THAT(log, HasSubstr(" I Worker 1: training step 10 done"));
  EXPECT_EQ(count_of(log, "Worker 0"), 0U);
  const std::string line = told({"logs", "worker:1", "--json"});
  EXPECT_EQ(Json::parse(line.substr(0, line.find('\n'))).at("task"), "worker:1");
}

TEST_F(Manage, FollowedLogsEndWithTheRun) {
  Process& job = launch_slowly();
  Process& follower = tell({"logs", "worker-0", "-f"});
  ASSERT_TRUE(says(follower, "training step 150 done"));
  EXPECT_TRUE(exits(follower, kExitDone));
  EXPECT_THAT(follower.standard_output(), HasSubstr("accuracy: 0."));
  EXPECT_TRUE(exits(job, kExitDone));
}

TEST_F(Manage, AFollowerLearnsThatTheLaunchWasKilled) {
  Process& job = launch(endless());
  ASSERT_TRUE(says(job, "\\[worker:1\\] .*training step 3 done"));
  Process& follower = tell({"logs", "worker-1", "--follow"});
  ASSERT_TRUE(says(follower, "training step 3 done"));
  job.send(SIGKILL);
  EXPECT_TRUE(exits(follower, kExitLostPeers));
  EXPECT_TRUE(says(follower, "the launch at .* does not answer any more"));
}

// "restart worker-1", and the task that is then a new process.
class ManagePods : public Manage, public ::testing::WithParamInterface<std::string> {};

TEST_P(ManagePods, ComeBackAndTheRunHasTheBitsOfAnUndisturbedOne) {
  const std::string verb = GetParam().substr(0, GetParam().find(' '));
  const std::string task = GetParam().substr(verb.size() + 1);
  Process& job = launch_slowly({"--restart=never"});
  const Json before = status();
  EXPECT_THAT(told({"pods", verb, task}), HasSubstr(task));
  ASSERT_TRUE(says_times(job, 2, "\\[" + task + "\\] .*Started server"));
  const Json after = status();
  for (std::size_t each = 0; each < before.at("tasks").size(); ++each) {
    const Json& old_one = before.at("tasks").at(each);
    const Json& new_one = after.at("tasks").at(each);
    const bool is_it = new_one.at("task") == task;
    EXPECT_EQ(new_one.at("restarts"), is_it ? 1 : 0);
    EXPECT_EQ(new_one.at("pid") != old_one.at("pid"), is_it);
    const bool moves = is_it && GetParam() == "replace worker:1";
    EXPECT_EQ(new_one.at("address") != old_one.at("address"), moves);
  }
  expect_undisturbed(job);
}

INSTANTIATE_TEST_SUITE_P(Each, ManagePods,
                         ::testing::Values("restart ps:0", "restart worker:0", "restart worker:1",
                                           "replace ps:0", "replace worker:0", "replace worker:1"));

TEST_F(Manage, WorkersJoinARunningJob) {
  const Words elastic = {"--min_workers=1", "--max_workers=4"};
  Process& job = launch_slowly(elastic);
  EXPECT_EQ(told({"update", "--workers=4"}), "--workers: 2 -> 4; 2 workers join the run\n");
  for (const char* task : {"worker:2", "worker:3"}) {
    EXPECT_TRUE(says(job, "\\[" + std::string(task) + "\\] .*training step 3 done"));
  }
  told({"pods", "replace", "worker-3"});
  EXPECT_TRUE(says_times(job, 2, "\\[worker:3\\] .*Training begins"));
  expect_undisturbed(job, kRun + elastic);
}

TEST_F(Manage, WorkersJoinAnAsynchronousJob) {
  Process& job =
      launch(kSlowly + Words{"--sync_replicas=false", "--max_workers=3", "--train_steps=400"});
  ASSERT_TRUE(says(job, "\\[worker:1\\] .*training step 10 done"));
  told({"update", "--workers=3"});
  EXPECT_TRUE(says(job, "\\[worker:2\\] .*training step 3 done"));
  EXPECT_TRUE(exits(job, kExitDone));
}

TEST_F(Manage, OtherwiseAllStartAgainFromTheCheckpoint) {
  Process& job = launch_slowly({"--train_dir=" + (scratch() / "run").string()});
  EXPECT_THAT(told({"update", "--workers=3"}), HasSubstr("all tasks restart"));
  EXPECT_TRUE(says(job, "\\[worker:0\\] .*Restoring from .*: global step [1-9]"));
  EXPECT_TRUE(says(job, "disttf launch: update: done"));
  EXPECT_EQ(status().at("tasks").size(), 4U);
  EXPECT_TRUE(exits(job, kExitDone));
  EXPECT_TRUE(says(job, "\\[worker:2\\] .*accuracy: 0."));
}

// An options file with these flags, in addition to those of the run.
std::string options_with(const std::string& flags, const std::string& memory) {
  return R"({"service": {"job_context": "{\"train_steps\": 400, \"debug_delay_ms\": 20, )"
         R"(\"print_weights_hash\": true, )" +
         flags + R"(}"}, "worker": {"count": 2, "mem": )" + memory +
         R"(}, "parameter_server": {"count": 1}})";
}

TEST_F(Manage, SettingsRollThroughTheTasks) {
  const std::string first = file("first.json", options_with(R"(\"log_every\": 1)", "1000"));
  const std::string second =
      file("second.json", options_with(R"(\"log_every\": 2, \"save_secs\": 1)", "1500"));
  Process& job = launch({"--options=" + first});
  ASSERT_TRUE(says(job, "\\[worker:1\\] .*training step 10 done"));
  EXPECT_EQ(told({"update", "--options=" + second}),
            "--log_every: 1 -> 2, --save_secs: default -> 1, --memory: 1000 -> 1500; the tasks "
            "restart one after the other\n");
  expect_refusal({"pods", "restart", "ps-0"}, kExitError, "an update is under way; try again");
  EXPECT_TRUE(says(job, "disttf launch: update: done"));
  for (const Json& task : status().at("tasks")) {
    EXPECT_EQ(task.at("restarts"), 1);
    const std::string pid = task.at("pid").dump();
    std::ifstream limits("/proc/" + pid + "/limits");
    const std::string text{std::istreambuf_iterator<char>(limits), {}};
    const bool is_worker = task.at("task").get<std::string>().starts_with("worker");
    EXPECT_THAT(text, HasSubstr("Max data size             " +
                                std::to_string((is_worker ? 1500U : 4096U) << 20U)));
  }
  expect_undisturbed(job, {"--train_steps=400", "--print_weights_hash"});
}

TEST_F(Manage, ATaskRunsOnTheCpusThatItMayUse) {
  Process& job = launch(endless() + Words{"--cpus=0.5", "--ps_cpus=1"});
  ASSERT_TRUE(says(job, "\\[worker:1\\] .*training step 3 done"));
  for (const pid_t child : children_of(job.pid())) {
    cpu_set_t cpus;
    ASSERT_EQ(sched_getaffinity(child, sizeof(cpus), &cpus), 0);
    EXPECT_EQ(CPU_COUNT(&cpus), 1);
  }
}

TEST_F(Manage, ATaskThatNeedsMoreMemoryThanItMayHaveEndsTheRun) {
  Process& job = launch({"--memory=8"});
  EXPECT_TRUE(exits(job, kExitError));
  EXPECT_TRUE(says(job, "disttf launch: \\[worker:[01]\\] had a limit of 8 MiB of private memory"));
}

TEST_F(Manage, WhatCannotBeIsASentence) {
  Process& job = launch(endless());
  ASSERT_TRUE(says(job, "\\[worker:1\\] .*training step 3 done"));
  expect_refusal({"update", "--workers=1"}, kExitError,
                 "--workers: 1 is fewer than the 2 that run; counts cannot shrink");
  expect_refusal({"update", "--workers=4"}, kExitError, "has no --train_dir");
  expect_refusal({"pods", "restart", "worker-7"}, kExitUsage, "there is no task worker:7");
  expect_refusal({"logs", "chief-0"}, kExitUsage, "there is no task chief:0");
  expect_refusal({"update", "--options=" + file("x.json", R"({"gpu_worker": {"count": 1}})")},
                 kExitUsage, "--options: gpu_worker.count is 1; expected 0");
  expect_refusal({"page"}, kExitError, "this launch has no page; start it with --page");
  EXPECT_EQ(status().at("tasks").size(), 3U);
}

TEST_F(Manage, NoLaunchIsASentence) {
  expect_refusal({"status"}, kExitError, "no launch of this user is running");
  expect_refusal({"status", "--control=" + (scratch() / "none").string()}, kExitError,
                 "no launch is running at");
}

TEST_F(Manage, WhatAKilledLaunchLeavesIsRemoved) {
  Process& job = launch(endless() + Words{"--control_port=0"});
  ASSERT_TRUE(says(job, "managed at http://127.0.0.1:"));
  ASSERT_TRUE(std::filesystem::exists(socket_of(job)));
  job.send(SIGKILL);
  ASSERT_TRUE(killed(job, SIGKILL));
  ASSERT_TRUE(std::filesystem::exists(socket_of(job)));
  expect_refusal({"status"}, kExitError, "no launch of this user is running");
  EXPECT_TRUE(std::filesystem::is_empty(directory()));
}

TEST_F(Manage, OfSeveralLaunchesOneIsNamed) {
  Process& first = launch(endless());
  Process& second = launch(endless());
  ASSERT_TRUE(says(first, "\\[worker:1\\] .*training step 3 done"));
  ASSERT_TRUE(says(second, "\\[worker:1\\] .*training step 3 done"));
  expect_refusal({"status"}, kExitError,
                 "2 launches are running; choose one with --control: .*sock");
  const Json named = Json::parse(told({"status", "--json", "--control=" + socket_of(second)}));
  EXPECT_EQ(named.at("pid"), second.pid());
}

TEST_F(Manage, AnAddressThatCannotBeHadEndsALaunchThatAskedForIt) {
  Process& job = launch({"--control=" + (scratch() / "none" / "x.sock").string()});
  EXPECT_TRUE(exits(job, kExitCannotListen));
  EXPECT_TRUE(says(job, "--control: .*is unavailable: No such file or directory"));
}

TEST_F(Manage, ThePortWantsTheToken) {
  Process& job = launch_slowly({"--control_port=0"});
  const std::string port = captured(job.standard_error(), "managed at http://127.0.0.1:([0-9]+)");
  const std::string path = captured(job.standard_error(), "bearer token is in (\\S+)");
  struct stat mode {};
  ASSERT_EQ(stat(path.c_str(), &mode), 0);
  EXPECT_EQ(mode.st_mode & 0777U, 0600U);
  std::string token;
  std::getline(std::ifstream(path), token);
  asio::io_context context;
  const auto ask = [&](const std::string& field) {
    asio::ip::tcp::socket socket(context);
    socket.connect(
        {asio::ip::address_v4::loopback(), static_cast<asio::ip::port_type>(std::stoul(port))});
    return answer_to(socket,
                     "POST /v1/pods/worker-1/restart HTTP/1.1\r\nHost: x\r\n" + field + "\r\n");
  };
  EXPECT_THAT(ask(""), HasSubstr(" 401 "));
  EXPECT_THAT(ask("Authorization: Bearer wrong\r\n"), HasSubstr(" 401 "));
  EXPECT_EQ(status().at("tasks").at(2).at("restarts"), 0);
  EXPECT_THAT(ask("Authorization: Bearer " + token + "\r\n"), HasSubstr(" 200 "));
  expect_undisturbed(job);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(Manage, UnauthenticatedPeersDoNotDisturbTheRun) {
  Process& job = launch_slowly();
  asio::io_context context;
  std::vector<std::unique_ptr<asio::local::stream_protocol::socket>> open;
  const auto connect = [&]() -> asio::local::stream_protocol::socket& {
    open.push_back(std::make_unique<asio::local::stream_protocol::socket>(context));
    open.back()->connect({socket_of(job)});
    return *open.back();
  };
  for (const std::string& garbage :
       {std::string("\0\1\2\3", 4) + std::string(10'000, '\xff'),
        "GET /" + std::string(1'000'000, 'a'),
        std::string("POST /v1/update HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999999\r\n\r\n"),
        std::string("POST /v1/update HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n{{{"),
        std::string("POST /v1/update HTTP/1.1\r\nHost: x\r\nContent-Length: 40\r\n\r\n"
                    R"({"workers": 1000000000000000000000000000})"),
        std::string("DELETE /v1/pods/worker-1 HTTP/1.1\r\nHost: x\r\n\r\n")}) {
    EXPECT_THAT(answer_to(connect(), garbage), HasSubstr("{\"error\":"));
  }
  open.clear();
  for (int each = 0; each < 20; ++each) {  // half a request, then nothing
    std::error_code ignored;
    asio::write(connect(), asio::buffer(std::string("GET /v1/sta")), ignored);
  }
  EXPECT_EQ(status().at("tasks").size(), 3U);
  expect_undisturbed(job);
}

}  // namespace
}  // namespace disttf::test_process
