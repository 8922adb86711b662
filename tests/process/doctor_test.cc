// `disttf doctor`: its findings on the test machine, and under worse conditions.
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "math/kernels.h"
#include "tests/process/cpu_quota.h"
#include "tests/process/process_test.h"
#include "tests/support/engines.h"

namespace disttf::test_process {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Returns whether this kernel can restrict processes to named files (landlock(7)).
bool keeps_within() {
  constexpr long kCreateRuleset = 444;
  constexpr int kAskVersion = 1;
  return syscall(kCreateRuleset, nullptr, 0, kAskVersion) >= 2;
}

class Doctor : public ProcessTest {
 protected:
  Process& examine(const Words& flags = {}) { return run("doctor", Words{"doctor"} + flags); }
  // Returns the finding about the subject from the JSON output.
  static json finding(const json& printed, const std::string& subject) {
    for (const json& each : printed.at("findings")) {
      if (each.at("subject") == subject) {
        return each;
      }
    }
    ADD_FAILURE() << "no finding about " << subject;
    return {};
  }
};

TEST_F(Doctor, SaysALineOfEachThing) {
  Process& doctor = examine();
  ASSERT_TRUE(exits(doctor, kExitDone));
  const std::string text = doctor.standard_output();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 13);
  EXPECT_THAT(text, StartsWith("kernel         good     Linux "));
  EXPECT_THAT(text, HasSubstr("\nseccomp        good     system calls "));
  EXPECT_THAT(text, HasSubstr("\nno_new_privs   good "));
  EXPECT_THAT(
      text, HasSubstr(keeps_within()
                          ? "\nlandlock       good     ABI "
                          : "\nlandlock       lacking  not available in this kernel or container"));
  EXPECT_THAT(text, HasSubstr("\nshared_memory  good     tasks of this user"));
  EXPECT_THAT(text, HasSubstr("processor      "));
  EXPECT_THAT(text,
              HasSubstr("--isa " + std::string(math::isa_name(math::supported_isas().front()))));
}

TEST_F(Doctor, SaysItAsJson) {
  Process& doctor = examine({"--json"});
  ASSERT_TRUE(exits(doctor, kExitDone));
  const json printed = json::parse(doctor.standard_output());
  EXPECT_EQ(printed.at("well"), true);
  std::vector<std::string> subjects;
  for (const json& each : printed.at("findings")) {
    subjects.push_back(each.at("subject"));
  }
  EXPECT_THAT(subjects, ElementsAre("kernel", "seccomp", "no_new_privs", "landlock", "core_dumps",
                                    "shared_memory", "descriptors", "processor", "processors",
                                    "memory", "clock", "certificates", "gpus"));
  EXPECT_EQ(finding(printed, "seccomp").at("grade"), "good");
}

TEST_F(Doctor, TriesThePort) {
  const ReservedPort port;
  const std::string flag = "--port=" + std::to_string(port.number());
  const ClusterOnLoopback cluster({.ps = 1, .workers = 1});
  Process& ps = run_task(cluster, net::Job::kPs, 0);
  ASSERT_TRUE(says(ps, "Started server"));
  Process& free = examine({flag});
  EXPECT_TRUE(exits(free, kExitDone));
  EXPECT_THAT(free.standard_output(), HasSubstr(" is free\n"));
  const std::string address = cluster.address(net::Job::kPs, 0);
  Process& taken = examine({"--json", "--port=" + address.substr(address.rfind(':') + 1)});
  EXPECT_TRUE(exits(taken, kExitCannotListen));
  const json printed = json::parse(taken.standard_output());
  EXPECT_EQ(printed.at("well"), false);
  EXPECT_EQ(finding(printed, "port").at("grade"), "bad");
  EXPECT_THAT(finding(printed, "port").at("text").get<std::string>(),
              HasSubstr("Address already in use"));
}

TEST_F(Doctor, SaysWhereADescriptorLimitIsLow) {
  const std::string limited = "ulimit -n 100 && exec \"$0\" doctor";
  Process& doctor = run_program("/bin/sh", {"-c", limited, disttf_binary()}, "doctor");
  EXPECT_TRUE(exits(doctor, kExitDone));
  EXPECT_THAT(doctor.standard_output(), HasSubstr("\ndescriptors    lacking  100 files"));
}

// As in a container: doctor starts inside of the group.
TEST_F(Doctor, SaysWhatAControlGroupGives) {
  std::string why;
  const auto half = CpuQuota::create(2, why);
  if (!half) {
    return test_support::skip_without_engine(why);
  }
  const std::string held = "until grep -q disttf-" + std::to_string(getpid()) +
                           "- /proc/self/cgroup; do :; done && exec \"$0\" doctor";
  Process& doctor = run_program("/bin/sh", {"-c", held, disttf_binary()}, "doctor");
  half->hold(doctor.pid());
  EXPECT_TRUE(exits(doctor, kExitDone));
  EXPECT_THAT(doctor.standard_output(),
              HasSubstr(", limited to 0."));  // (a parent group may give less)
}

TEST_F(Doctor, RefusesWhatMakesNoSense) {
  Process& refused = examine({"--port=0"});
  EXPECT_TRUE(exits(refused, kExitUsage));
  EXPECT_TRUE(says(refused, "--port: 0 is not from 1 to 65535"));
}

}  // namespace
}  // namespace disttf::test_process
