// `disttf healthcheck`: what an engine learns about a service in any state.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>

#include "tests/process/process_test.h"
#include "tests/support/made_identities.h"
#include "tests/support/mirror_server.h"

namespace disttf::test_process {
namespace {

using test_support::MirrorConnection;
using test_support::MirrorRequest;
using test_support::MirrorServer;

class Healthcheck : public ProcessTest {
 protected:
  // Checks `url`, which is not healthy: exit code 1 and a message.
  void expect_unwell(const std::string& url, const std::string& sentence) {
    Process& asks = run("healthcheck", {"healthcheck", url, "--timeout=1"});
    EXPECT_TRUE(exits(asks, kExitError));
    EXPECT_TRUE(says(asks, sentence));
    EXPECT_EQ(asks.standard_output(), "");
  }
};

TEST_F(Healthcheck, KnowsAServiceThatIsAliveFromOneThatIsReady) {
  const std::string run_dir = (scratch() / "run").string();
  std::filesystem::create_directories(run_dir);
  Process& service = run("serve", {"serve", run_dir, "--port=0"});
  ASSERT_TRUE(says(service, "serving at http"));
  const std::string at = captured(service.standard_error(), "serving at (http://[0-9.:]+)/");
  Process& alive = run("alive", {"healthcheck", at + "/v2/health/live"});
  EXPECT_TRUE(exits(alive, kExitDone));
  EXPECT_EQ(alive.standard_output(), at + "/v2/health/live: well\n");
  expect_unwell(at + "/v2/health/ready", "/v2/health/ready: the server answered 503");
  expect_unwell(at + "/v2/health/well", "the server answered 404");

  Process& job =
      run("launch", Words{"launch", "--workers=1", "--train_steps=1", "--train_dir=" + run_dir} +
                        data_flags());
  ASSERT_TRUE(exits(job, kExitDone));
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  const auto is_ready = [&] {
    Process& asks = run("ready", {"healthcheck", at + "/v2/health/ready"});
    return asks.wait().exit_code == kExitDone;
  };
  while (!is_ready()) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
  }
  service.send(SIGSTOP);
  expect_unwell(at + "/v2/health/ready", "waiting for the response timed out: no time is left");
  service.send(SIGCONT);
}

// Checks over https. A renewed certificate is outside of the service's configured files, but in
// their folder.
TEST_F(Healthcheck, TrustsTheAuthorityThatItIsTold) {
  const auto make = [this](const std::string& kind) {
    const std::string folder = (scratch() / kind).string();
    Process& makes = run_program(test_support::identity_maker(), {kind, folder});
    EXPECT_TRUE(exits(makes, kExitDone));
    return folder + "/";
  };
  const std::string own = make("p256");
  const std::string next = make("ed25519");
  const std::string run_dir = (scratch() / "run").string();
  std::filesystem::create_directories(run_dir);
  Process& service = run("serve", {"serve", run_dir, "--port=0", "--tls_cert=" + own + "server.pem",
                                   "--tls_key=" + own + "server.key"});
  ASSERT_TRUE(says(service, "serving at https"));
  const std::string port =
      captured(service.standard_error(), "serving at https://127.0.0.1:([0-9]+)/");
  const std::string url = "https://localhost:" + port + "/v2/health/live";
  const auto trusts = [&](const std::string& authority) {
    Process& asks = run("healthcheck", {"healthcheck", url, "--ca_file=" + authority});
    return asks.wait().exit_code == kExitDone;
  };
  EXPECT_TRUE(trusts(own + "ca.pem"));
  EXPECT_FALSE(trusts(next + "ca.pem"));
  expect_unwell("https://127.0.0.1:" + port + "/v2/health/live", "certificate that it shows");
  expect_unwell("http://localhost:" + port + "/v2/health/live", "the server answered 400");
  for (const char* file : {"server.key", "server.pem"}) {
    std::filesystem::rename(next + file, own + file);
  }
  EXPECT_TRUE(trusts(next + "ca.pem"));
  EXPECT_FALSE(trusts(own + "ca.pem"));
  Process& other = run("serve", {"serve", run_dir, "--tls_cert=none", "--tls_key=none"});
  EXPECT_TRUE(exits(other, kExitUsage));
  EXPECT_TRUE(says(other, "--tls_cert: \"none\" cannot be read: No such file"));
}

TEST_F(Healthcheck, SaysATokenWhereOneIsWanted) {
  const auto write = [this](const std::string& name, const std::string& token) {
    std::string path = (scratch() / name).string();
    std::ofstream(path) << token << "\n";
    std::filesystem::permissions(path, std::filesystem::perms(0600));
    return "--token_file=" + path;
  };
  const std::string right = write("right", std::string(32, 'r'));
  const std::string wrong = write("wrong", std::string(32, 'w'));
  const auto asks = [this](const std::string& url, const Words& flags) {
    return run("healthcheck", Words{"healthcheck", url} + flags).wait().exit_code;
  };
  std::filesystem::create_directories(scratch() / "run");
  Process& service = run("serve", {"serve", (scratch() / "run").string(), "--port=0", right});
  ASSERT_TRUE(says(service, "serving at http"));
  const std::string serve =
      captured(service.standard_error(), "serving at (http://127.0.0.1:[0-9]+)/");
  EXPECT_EQ(asks(serve + "/v2/health/live", {}), kExitDone) << "open to all";
  EXPECT_EQ(asks(serve + "/metrics", {}), kExitError);
  EXPECT_EQ(asks(serve + "/metrics", {wrong}), kExitError);
  EXPECT_EQ(asks(serve + "/metrics", {right}), kExitDone);
  EXPECT_EQ(asks(serve + "/metrics", {"--token_file=none"}), kExitUsage);
  Process& job = run("launch", Words{"launch", "--workers=1", "--page", "--metrics_port=0", right} +
                                   endless() + data_flags());
  ASSERT_TRUE(says(job, "ps:0.* metrics at http://"));
  ASSERT_TRUE(says(job, "the run's page is http://"));
  const std::string log = job.standard_error() + job.standard_output();
  const std::string page = captured(log, "page is (http://127.0.0.1:[0-9]+/)");
  const std::string ps = captured(log, "ps:0.* metrics at (http://127.0.0.1:[0-9]+/metrics)");
  for (const std::string& url : {page + "v1/run", ps}) {
    EXPECT_EQ(asks(url, {}), kExitError) << url;
    EXPECT_EQ(asks(url, {wrong}), kExitError) << url;
    EXPECT_EQ(asks(url, {right}), kExitDone) << url;
  }
  Process& nothing = run("ps", Words{"ps", "--task_index=0", "--ps_hosts=127.0.0.1:1",
                                     "--worker_hosts=127.0.0.1:2", right});
  EXPECT_TRUE(exits(nothing, kExitUsage));
  EXPECT_TRUE(says(nothing, "has no effect without --metrics_port or --page"));
  Process& none = run("serve", {"serve", (scratch() / "run").string(), "--token_file=none"});
  EXPECT_TRUE(exits(none, kExitUsage));
  EXPECT_TRUE(says(none, "--token_file: \"none\" cannot be read: No such file"));
}

// The page of a launch, its metrics, and those of its tasks.
TEST_F(Healthcheck, AsksTheAddressesOfALaunchOverHttps) {
  const std::string own = (scratch() / "p256/").string();
  ASSERT_TRUE(exits(run_program(test_support::identity_maker(), {"p256", own}), kExitDone));
  Process& job =
      run("launch", Words{"launch", "--workers=1", "--page", "--metrics_port=0",
                          "--tls_cert=" + own + "server.pem", "--tls_key=" + own + "server.key"} +
                        endless() + data_flags());
  ASSERT_TRUE(says(job, "ps:0.* metrics at https://"));
  ASSERT_TRUE(says(job, "worker:0.* metrics at https://"));
  ASSERT_TRUE(says(job, "the run's page is https://"));
  const std::string log = job.standard_error() + job.standard_output();
  std::set<std::string> addresses;
  const std::regex link("https://127.0.0.1:([0-9]+/(metrics)?)");
  for (std::sregex_iterator each(log.begin(), log.end(), link); each != std::sregex_iterator();
       ++each) {
    addresses.insert("https://localhost:" + (*each)[1].str());
  }
  EXPECT_EQ(addresses.size(), 4U) << log;  // two of the launch, one of each task
  for (const std::string& address : addresses) {
    Process& asks = run("asks", {"healthcheck", address, "--ca_file=" + own + "ca.pem"});
    EXPECT_TRUE(exits(asks, kExitDone)) << address;
    expect_unwell("http" + address.substr(5), "the server answered 400");
  }
}

TEST_F(Healthcheck, WaitsNoLongerThanItIsToldTo) {
  MirrorServer mute(
      [](const MirrorRequest&, const MirrorConnection& client) { client.wait_for_hangup(); });
  expect_unwell(mute.url(), "waiting for the response timed out: no time is left");
  MirrorServer drips([](const MirrorRequest&, const MirrorConnection& client) {
    client.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
    while (!client.hangs_up_within(milliseconds(10)) && client.send(".")) {
    }
  });
  expect_unwell(drips.url(), "no time is left");
}

TEST_F(Healthcheck, KnowsWhoIsNoService) {
  MirrorServer other([](const MirrorRequest&, const MirrorConnection& client) {
    client.send("SSH-2.0-Other\r\n");
  });
  expect_unwell(other.url(), "not an HTTP.* it begins with \"SSH-2.0-Other");
  MirrorServer leaves([](const MirrorRequest&, const MirrorConnection&) {});
  expect_unwell(leaves.url(), "the connection was closed without a response");
  const ReservedPort nobody;
  expect_unwell("http://127.0.0.1:" + std::to_string(nobody.number()) + "/",
                "connecting to 127.0.0.1 port [0-9]+ failed: Connection refused");
}

// A container's processes are those of a PID namespace.
class OwnContainer : public Healthcheck {
 protected:
  void SetUp() override {
    Process& probe = run_program("/usr/bin/unshare", kContainer + Words{"/bin/true"});
    if (probe.wait().exit_code != 0) {
      GTEST_SKIP() << "this user may not make a PID namespace";
    }
  }
  // Starts a shell in the namespace, with the program as $0.
  Process& container(const std::string& script) {
    return run_program("/usr/bin/unshare",
                       kContainer + Words{"/bin/bash", "-c", script, disttf_binary()});
  }
  const Words kContainer = {"--mount", "--pid", "--fork", "--kill-child", "--mount-proc"};
};

TEST_F(OwnContainer, WithoutATaskIsNotWell) {
  Process& asks = container("exec \"$0\" healthcheck");
  EXPECT_TRUE(exits(asks, kExitError));
  EXPECT_TRUE(says(asks, "healthcheck: no other disttf runs in this container"));
}

TEST_F(OwnContainer, IsWellWhileItsTaskRunsAndNotWhenItIsStopped) {
  const ClusterOnLoopback cluster({.ps = 1, .workers = 1});
  Process& asks = container("\"$0\" ps --task_index=0 --ps_hosts=" + cluster.list(net::Job::kPs) +
                            " --worker_hosts=" + cluster.list(net::Job::kWorker) +
                            " & until \"$0\" healthcheck; do :; done; "
                            "kill -STOP $!; while \"$0\" healthcheck; do :; done; "
                            "kill -KILL $!; wait $!; \"$0\" healthcheck");
  EXPECT_TRUE(exits(asks, kExitError));
  EXPECT_TRUE(says(asks, "^disttf ps, process [0-9]+: well"));
  EXPECT_TRUE(says(asks, "disttf ps, process [0-9]+, is stopped"));
  EXPECT_TRUE(says(asks, "no other disttf runs in this container"));
}

// `serve` is checked over HTTP, at any address.
TEST_F(OwnContainer, AsksAServiceWhetherItIsAlive) {
  std::filesystem::create_directories(scratch() / "run");
  Process& asks = container(
      "\"$0\" serve run --port=0 & "
      "for attempt in {1..1000}; do \"$0\" healthcheck && break; done");
  EXPECT_TRUE(says(asks, "^disttf serve, process [0-9]+: well"));
}

TEST_F(OwnContainer, AsksAServiceThatListensOverIpv6Only) {
  if (!std::ifstream("/proc/net/if_inet6").good()) {
    GTEST_SKIP() << "this machine has no IPv6";
  }
  std::filesystem::create_directories(scratch() / "run");
  Process& asks = container(
      "\"$0\" serve run --port=0 --host=::1 & "
      "for attempt in {1..1000}; do \"$0\" healthcheck && break; done");
  EXPECT_TRUE(says(asks, "^disttf serve, process [0-9]+: well"));
}

TEST_F(Healthcheck, SendsNoRequestForInvalidArguments) {
  struct Case {
    Words words;
    std::string sentence;
  };
  for (const auto& [words, sentence] : {
           Case{{"127.0.0.1:8501"}, "healthcheck: \"127.0.0.1:8501\" "},
           Case{{"http://a/", "http://b/"}, "healthcheck: one URL, but \"http://b/\" follows it"},
           Case{{"http://a/", "--timeout=0"}, "--timeout: 0 is not from 1 to 3600"},
       }) {
    Process& refused = run("refused", Words{"healthcheck"} + words);
    EXPECT_TRUE(exits(refused, kExitUsage));
    EXPECT_TRUE(says(refused, sentence));
  }
}

}  // namespace
}  // namespace disttf::test_process
