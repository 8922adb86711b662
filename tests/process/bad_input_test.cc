// User errors on a task's command line or in its TF_CONFIG: one sentence that names the field, the
// value and the allowed values, and exit code 2.
#include <ostream>

#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

// Addresses of tasks that are never contacted: the input is rejected before a port is opened.
const Words kLists = {"--ps_hosts=a:1,b:2", "--worker_hosts=c:3,d:4", "--insecure"};

struct Mistake {
  const char* name;
  Words arguments;
  const char* sentence;  // a regular expression
};

void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.name; }

class BadFlags : public ProcessTest, public ::testing::WithParamInterface<Mistake> {};

TEST_P(BadFlags, AreToldInOneSentence) {
  Process& task = run("disttf", GetParam().arguments);
  EXPECT_TRUE(exits(task, kExitUsage));
  EXPECT_TRUE(says(task, GetParam().sentence));
  EXPECT_EQ(count_of(task.standard_error(), "\n"), 1U);
  EXPECT_EQ(task.standard_output(), "");
}

const std::vector<Mistake>& mistakes() {
  static const std::vector<Mistake> kMistakes = {
      {"UnknownCommand", {"dance"}, "\"dance\" is not a command; one of launch, ps, worker"},
      {"UnknownFlag", {"launch", "--frobnicate=1"}, "--frobnicate"},
      {"FlagWithoutValue", {"launch", "--train_steps"}, "--train_steps"},
      {"TextForANumber", {"launch", "--train_steps=many"}, "--train_steps.*many"},
      {"NoSteps", {"launch", "--train_steps=0"}, "--train_steps: 0 is not at least 1"},
      {"NegativeBatch", {"launch", "--batch_size=-1"}, "--batch_size.*-1"},
      {"HugeBatch",
       {"launch", "--batch_size=100000000"},
       "--batch_size: 100000000 is not from 1 to 1048576"},
      {"HugeBatchOfManyUnits",
       {"launch", "--batch_size=1048576", "--hidden_units=65536"},
       "--batch_size: 1048576 is not from 1 to [0-9]+ with --hidden_units 65536: "},
      {"NoTrainers",
       {"launch", "--workers=0"},
       "--workers: must be at least 1 without --chief .got 0."},
      {"NegativeRate", {"launch", "--learning_rate=-1"}, "learning_rate.*-1"},
      {"UnknownModel", {"launch", "--model=resnet"}, "--model.*resnet"},
      {"UnknownIsa", {"launch", "--isa=mmx"}, "--isa: \"mmx\" is not one that this CPU has"},
      {"TooManyReplicas",
       {"launch", "--workers=2", "--replicas_to_aggregate=3"},
       "--replicas_to_aggregate: 3 is not from 0 to the number of trainers, 2"},
      {"StalenessInSync", {"launch", "--max_staleness=3"}, "--max_staleness: 3 is not allowed"},
      {"NoPatience", {"launch", "--peer_timeout=0"}, "--peer_timeout.*0"},
      {"MissingConfigurationFile", {"launch", "--config=none.toml"}, "none.toml"},
      {"AddressWithoutPort", {"ps", "--ps_hosts=a", "--worker_hosts=b:1"}, "--ps_hosts.*\"a\""},
      {"PortTooLarge", {"ps", "--ps_hosts=a:99999", "--worker_hosts=b:1"}, "--ps_hosts.*99999"},
      {"EmptyEntry",
       {"worker", "--ps_hosts=a:1", "--worker_hosts=b:1,,c:1", "--task_index=0"},
       "--worker_hosts"},
      {"AddressTwiceInAList",
       {"ps", "--ps_hosts=a:1,a:1", "--worker_hosts=b:1", "--task_index=0"},
       "--ps_hosts.*a:1"},
      {"AddressInTwoLists",
       {"ps", "--ps_hosts=a:1", "--worker_hosts=b:1,a:1", "--task_index=0"},
       "--worker_hosts.*a:1"},
      {"TwoChiefs",
       {"chief", "--ps_hosts=a:1", "--worker_hosts=b:1", "--chief_host=c:1,d:1", "--task_index=0"},
       "--chief_host.*"},
      {"IndexOutOfRange", Words{"worker", "--task_index=2"} + kLists, "--task_index.*2.*0.*1"},
      {"NegativeIndex", Words{"worker", "--task_index=-1"} + kLists, "--task_index.*-1"},
      {"NoIndex", Words{"worker"} + kLists,
       "--task_index: missing; there are 2 worker tasks, so 0 to 1"},
      {"NoJob", Words{"--task_index=0"} + kLists, "--job_name: missing"},
      {"UnknownJob", Words{"--job_name=boss", "--task_index=0"} + kLists,
       "--job_name: \"boss\" is not ps, worker or chief"},
      {"OtherJobThanTheCommand", Words{"ps", "--job_name=worker", "--task_index=0"} + kLists,
       "--job_name: \"worker\" contradicts the command ps"},
      {"NoLists", {"worker", "--task_index=0"}, "--ps_hosts: missing"},
      {"NoPs", {"worker", "--worker_hosts=a:1", "--task_index=0"}, "--ps_hosts"},
      {"NoWorkers", {"ps", "--ps_hosts=a:1", "--task_index=0"}, "--worker_hosts"},
      {"NeitherASecretNorTheWordForNone",
       {"worker", "--ps_hosts=a:1", "--worker_hosts=127.0.0.1:1", "--task_index=0"},
       "--secret_file: missing; a:1 is on another machine, .*--insecure"},
      {"ASecretAndTheWordForNone", Words{"ps", "--task_index=0", "--secret_file=f"} + kLists,
       "--insecure: true is not allowed with --secret_file \"f\"; give one of them"},
      {"ChiefWithoutAddress", Words{"chief", "--task_index=0"} + kLists, "--chief_host|chief"},
  };
  return kMistakes;
}

INSTANTIATE_TEST_SUITE_P(Each, BadFlags, ::testing::ValuesIn(mistakes()),
                         [](const auto& each) { return each.param.name; });

struct BadConfig {
  const char* name;
  const char* value;
  const char* sentence;  // a regular expression
};

void PrintTo(const BadConfig& config, std::ostream* out) { *out << config.name; }

class BadTfConfig : public ProcessTest, public ::testing::WithParamInterface<BadConfig> {};

TEST_P(BadTfConfig, IsToldInOneSentence) {
  Process& task = run("train", {"train"}, {{"TF_CONFIG", GetParam().value}});
  EXPECT_TRUE(exits(task, kExitUsage));
  EXPECT_TRUE(says(task, GetParam().sentence));
  EXPECT_EQ(task.standard_output(), "");
}

constexpr BadConfig kBadConfigs[] = {
    {"NotJson", "{cluster:", "TF_CONFIG"},
    {"NotAnObject", "[1]", "TF_CONFIG"},
    {"ClusterNotAnObject", R"({"cluster":[1],"task":{"type":"ps","index":0}})",
     "TF_CONFIG.cluster"},
    {"JobNotAList", R"({"cluster":{"ps":7,"worker":["b:1"]},"task":{"type":"ps","index":0}})",
     "TF_CONFIG.cluster.ps"},
    {"AddressNotAString",
     R"({"cluster":{"ps":[1],"worker":["b:1"]},"task":{"type":"ps","index":0}})",
     "TF_CONFIG.cluster.ps.*1"},
    {"BadAddress", R"({"cluster":{"ps":["a"],"worker":["b:1"]},"task":{"type":"ps","index":0}})",
     "TF_CONFIG.cluster.ps.*\"a\""},
    {"AddressTwice",
     R"({"cluster":{"ps":["a:1"],"worker":["a:1"]},"task":{"type":"ps","index":0}})",
     "TF_CONFIG.cluster.*a:1"},
    {"NoTask", R"({"cluster":{"ps":["a:1"],"worker":["b:1"]}})", "TF_CONFIG.task"},
    {"NoType", R"({"cluster":{"ps":["a:1"],"worker":["b:1"]},"task":{"index":0}})",
     "TF_CONFIG.task.type"},
    {"UnknownType",
     R"({"cluster":{"ps":["a:1"],"worker":["b:1"]},"task":{"type":"boss","index":0}})",
     "TF_CONFIG.task.type.*boss"},
    {"TextForTheIndex",
     R"({"cluster":{"ps":["a:1"],"worker":["b:1"]},"task":{"type":"ps","index":"first"}})",
     "TF_CONFIG.task.index.*first"},
    {"IndexOutOfRange",
     R"({"cluster":{"ps":["a:1"],"worker":["b:1"]},"task":{"type":"worker","index":1}})",
     "TF_CONFIG.task.index.*1"},
    {"TwoChiefs",
     R"({"cluster":{"chief":["c:1","d:1"],"ps":["a:1"],"worker":["b:1"]},)"
     R"("task":{"type":"chief","index":0}})",
     "TF_CONFIG.cluster.chief"},
    {"NoPs", R"({"cluster":{"worker":["a:1","b:1"]},"task":{"type":"worker","index":0}})",
     "TF_CONFIG.cluster.*ps"},
};

INSTANTIATE_TEST_SUITE_P(Each, BadTfConfig, ::testing::ValuesIn(kBadConfigs),
                         [](const auto& each) { return each.param.name; });

class BadInput : public ProcessTest {};

TEST_F(BadInput, FlagsThatDescribeAnotherClusterThanTfConfig) {
  const ClusterOnLoopback cluster;
  Process& task = run("worker", Words{"worker", "--task_index=0"} + kLists,
                      {{"TF_CONFIG", cluster.tf_config("worker", 0)}});
  EXPECT_TRUE(exits(task, kExitUsage));
  EXPECT_TRUE(says(task, "TF_CONFIG and the flags describe different clusters"));
}

TEST_F(BadInput, CommandThatContradictsTfConfig) {
  const ClusterOnLoopback cluster;
  Process& task = run("ps", {"ps"}, {{"TF_CONFIG", cluster.tf_config("worker", 0)}});
  EXPECT_TRUE(exits(task, kExitUsage));
  EXPECT_TRUE(says(task, "TF_CONFIG.task.type: this is worker 0 there"));
}

TEST_F(BadInput, NothingAtAllPrintsTheHelp) {
  Process& task = run("disttf", {});
  EXPECT_TRUE(exits(task, kExitUsage));
  EXPECT_TRUE(says(task, "launch"));
  EXPECT_EQ(task.standard_output(), "");
}

}  // namespace
}  // namespace disttf::test_process
