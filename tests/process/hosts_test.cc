// Several hosts: network namespaces with their own addresses, and processes that do not see those
// of other hosts, so that memory cannot be shared. The README's example, and a driver with its
// servers, with a secret; over links of 100 Mb/s without one.
#include <iostream>

#include "tests/process/network.h"
#include "tests/process/process_test.h"
#include "tests/process/secret_file.h"
#include "tests/support/engines.h"

namespace disttf::test_process {
namespace {

using ::testing::HasSubstr;

const Words kLists = {"--ps_hosts=ps0:2222,ps1:2222", "--worker_hosts=worker0:2222,worker1:2222"};
const std::vector<std::string> kHosts = {"ps0", "ps1", "worker0", "worker1"};
// The bytes of the default model's parameters; a gradient has the same size.
constexpr std::uint64_t kBytesOfParameters = 79'510 * 4;

class Hosts : public ProcessTest {
 protected:
  void SetUp() override {
    std::string why;
    network_ = Network::create(kHosts + Words{"driver"}, why);
    if (!network_) {
      test_support::skip_without_engine(why);
    }
  }
  // Skips the test if the kernel cannot limit the rate of a link.
  void shape_links() {
    for (const std::string& host : kHosts) {
      std::string why;
      const std::string link = network_->shape(host, why);
      if (link.empty()) {
        GTEST_SKIP() << "links cannot be shaped here: " << why;
      }
      std::cout << "the link of " << host << ": " << link << "\n";
    }
  }
  Process& start_on(const std::string& host, const Words& words) {
    return run_program(network_->program(),
                       network_->words_alone_on(host) + Words{disttf_binary()} + words,
                       words.front() + " on " + host);
  }
  // Starts worker 1 on "worker1", and so on.
  std::vector<Process*> start_tasks(const Words& more) {
    std::vector<Process*> tasks;
    for (const std::string& host : kHosts) {
      tasks.push_back(&start_on(host, Words{host.substr(0, host.size() - 1),
                                            "--task_index=" + host.substr(host.size() - 1)} +
                                          kLists + data_flags() + more));
    }
    return tasks;
  }
  // Expects that every gradient has crossed the network.
  void expect_bytes_on_the_wire(std::uint64_t steps) {
    for (const char* worker : {"worker0", "worker1"}) {
      EXPECT_GE(network_->sent_by(worker), steps * kBytesOfParameters) << worker;
    }
  }

  [[nodiscard]] const Words& secret() const { return secret_; }

  std::unique_ptr<Network> network_;

 private:
  const Words secret_ = {"--secret_file=" + write_secret(scratch())};
};

TEST_F(Hosts, AreNotReachedByTasksThatHaveNeitherASecretNorTheWordForNone) {
  Process& ps = start_on("ps0", Words{"ps", "--task_index=0"} + kLists);
  EXPECT_TRUE(exits(ps, kExitUsage));
  EXPECT_TRUE(says(ps, "--secret_file: missing; ps0:2222 is on another machine"));
}

TEST_F(Hosts, TrainAsInFourTerminals) {
  const Words run = {"--train_steps=500", "--print_weights_hash", "--log_level=debug"};
  const std::vector<Process*> tasks = start_tasks(run + secret());
  ASSERT_TRUE(all_exit(tasks, kExitDone));
  expect_weights_of_launch({tasks[2], tasks[3]}, Words{"--ps=2", "--workers=2"} + run);
  for (const Process* worker : {tasks[2], tasks[3]}) {
    EXPECT_THAT(worker->standard_error(), HasSubstr("shares memory with 0 of 2 ps"));
  }
  EXPECT_GT(accuracy_in(*tasks[2]), 0.9);
  expect_bytes_on_the_wire(500);
}

TEST_F(Hosts, TrainOverLinksOf100MegabitsPerSecond) {
  shape_links();
  if (IsSkipped()) {
    return;
  }
  const Words run = {"--train_steps=100", "--print_weights_hash"};
  const std::vector<Process*> tasks = start_tasks(run + Words{"--insecure"});
  ASSERT_TRUE(all_exit(tasks, kExitDone));
  expect_weights_of_launch({tasks[2], tasks[3]}, Words{"--ps=2", "--workers=2"} + run);
  EXPECT_GT(accuracy_in(*tasks[2]), 0.8);
  expect_bytes_on_the_wire(100);
  for (const std::string& host : kHosts) {
    EXPECT_GE(network_->shaped_by(host), 100 * kBytesOfParameters) << host;
  }
}

// The servers cannot resolve the driver's name or connect to it.
TEST_F(Hosts, AreServersThatOneProcessDrives) {
  std::vector<Process*> servers;
  for (const std::string& host : kHosts) {
    servers.push_back(
        &start_on(host, Words{"server", "--job_name=" + host.substr(0, host.size() - 1),
                              "--task_index=" + host.substr(host.size() - 1), data_dir_flag()} +
                            kLists + secret()));
  }
  const Words run = {"--train_steps=100", "--print_weights_hash"};
  Process& driver = start_on(
      "driver", Words{"train", "--existing_servers"} + kLists + secret() + data_flags() + run);
  EXPECT_TRUE(exits(driver, kExitDone));
  expect_weights_of_launch({&driver}, Words{"--ps=2", "--workers=2", "--chief"} + run);
  expect_bytes_on_the_wire(100);
  for (Process* server : servers) {
    EXPECT_TRUE(says_times(*server, 2, "Waiting for requests"));
  }
}

}  // namespace
}  // namespace disttf::test_process
