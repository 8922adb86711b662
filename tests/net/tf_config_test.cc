#include "net/resolvers/tf_config.h"

#include <gmock/gmock.h>

#include "tests/support/thrown.h"

namespace disttf::net {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

[[nodiscard]] ClusterAndTask parsed(std::string_view json) {
  std::optional<ClusterAndTask> result = parse_tf_config(json);
  EXPECT_TRUE(result) << "taken for local: " << json;
  return result.value_or(ClusterAndTask{});
}

[[nodiscard]] std::string error_of(std::string_view json) {
  return sentence_of([&] { return parse_tf_config(json); }, "no error");
}

// Returns a cluster with one chief, two ps and two workers, and the task `task_json`.
[[nodiscard]] std::string with_task(std::string_view task_json) {
  return R"({"cluster":{"chief":["c:1"],"ps":["p:1","q:1"],"worker":["a:1","b:1"]},"task":)" +
         std::string(task_json) + "}";
}

TEST(TfConfig, ReadsWhatKubeflowWrites) {
  const ClusterAndTask result = parsed(
      R"({"cluster":{"ps":["mnist-ps-0.ml.svc:2222"],"worker":["mnist-worker-0.ml.svc:2222"]},)"
      R"("task":{"type":"worker","index":0},"environment":"cloud"})");
  EXPECT_THAT(result.cluster.ps, ElementsAre(Address{"mnist-ps-0.ml.svc", 2222}));
  EXPECT_THAT(result.cluster.workers, ElementsAre(Address{"mnist-worker-0.ml.svc", 2222}));
  EXPECT_EQ(result.task, (TaskId{Job::kWorker, 0}));
  EXPECT_TRUE(result.warnings.empty());
}

struct GoodTask {
  const char* json;
  TaskId task;
};
class TfConfigTask : public ::testing::TestWithParam<GoodTask> {};

TEST_P(TfConfigTask, IsUnderstood) {
  EXPECT_EQ(parsed(with_task(GetParam().json)).task, GetParam().task);
}

INSTANTIATE_TEST_SUITE_P(
    Table, TfConfigTask,
    ::testing::Values(GoodTask{R"({"type":"worker","index":1})", {Job::kWorker, 1}},
                      GoodTask{R"({"type":"WORKER","index":"1"})", {Job::kWorker, 1}},
                      GoodTask{R"({"type":"Ps","index":"0"})", {Job::kPs, 0}},
                      GoodTask{R"({"type":"master","index":0})", {Job::kChief, 0}},
                      GoodTask{R"({"type":"chief"})", {Job::kChief, 0}},
                      GoodTask{R"({"type":"evaluator","index":0})", {Job::kEvaluator, 0}},
                      GoodTask{R"({"type":"ps","index":1,"trial":"3","cloud":"x"})",
                               {Job::kPs, 1}}));

TEST(TfConfig, TakesMasterForChief) {
  const ClusterAndTask result =
      parsed(R"({"cluster":{"master":["m:1"],"ps":["p:1"]},"task":{"type":"master","index":0}})");
  EXPECT_THAT(result.cluster.chief, ElementsAre(Address{"m", 1}));
  EXPECT_TRUE(result.cluster.is_chief(result.task));
}

TEST(TfConfig, TakesAMapFromIndexToAddressForEveryJob) {
  const ClusterAndTask result = parsed(
      R"({"cluster":{"ps":{"1":"q:1","0":"p:1"},"worker":{"0":"a:1","1":"b:1"},"chief":{"0":"c:1"}},)"
      R"("task":{"type":"ps","index":1}})");
  EXPECT_THAT(result.cluster.ps, ElementsAre(Address{"p", 1}, Address{"q", 1}));
  EXPECT_FALSE(result.cluster.sparse);
}

TEST(TfConfig, SortsAMapByNumberNotByText) {
  std::string workers;
  for (int i = 0; i < 11; ++i) {
    workers += (i == 0 ? "" : ",") + std::string("\"") + std::to_string(i) + "\":\"w" +
               std::to_string(i) + ":1\"";
  }
  const ClusterAndTask result = parsed(R"({"cluster":{"ps":["p:1"],"worker":{)" + workers +
                                       R"(}},"task":{"type":"worker","index":10}})");
  EXPECT_EQ(result.cluster.address_of(result.task), (Address{"w10", 1}));
  EXPECT_EQ(result.cluster.workers[2], (Address{"w2", 1}));
}

TEST(TfConfig, TakesASparseMapOfWorkersAsGiven) {
  const ClusterAndTask result =
      parsed(R"({"cluster":{"ps":["p0:2222","p1:2222"],"worker":{"1":"w1:2222"}},)"
             R"("task":{"type":"worker","index":1}})");
  EXPECT_TRUE(result.cluster.sparse);
  EXPECT_EQ(result.cluster.address_of(result.task), (Address{"w1", 2222}));
  EXPECT_FALSE(result.cluster.is_chief(result.task));
}

TEST(TfConfig, TakesTheOlderKeyOfKubeflow) {
  const ClusterAndTask result = parsed(
      R"({"sparseCluster":{"ps":["p:1"],"worker":{"1":"b:1"}},"task":{"type":"worker","index":1}})");
  EXPECT_TRUE(result.cluster.sparse);
}

TEST(TfConfig, TakesTheOlderKeyBesideAnEmptyCluster) {
  const ClusterAndTask result = parsed(
      R"({"cluster":{},"sparseCluster":{"ps":["p:1"],"worker":["a:1"]},"task":{"type":"ps"}})");
  EXPECT_EQ(result.task.job, Job::kPs);
}

TEST(TfConfig, IgnoresAnUnknownJobWithAWarning) {
  const ClusterAndTask result = parsed(
      R"({"cluster":{"ps":["p:1"],"worker":["a:1"],"gpu_worker":["g:1"]},"task":{"type":"ps"}})");
  ASSERT_EQ(result.warnings.size(), 1U);
  EXPECT_THAT(result.warnings[0], HasSubstr("TF_CONFIG.cluster has a job \"gpu_worker\""));
}

TEST(TfConfig, LetsAnEvaluatorBeListedOrNot) {
  const char* task = R"("task":{"type":"evaluator","index":0}})";
  const ClusterAndTask listed = parsed(
      R"({"cluster":{"ps":["p:1"],"worker":["a:1"],"evaluator":["e:1"]},)" + std::string(task));
  const ClusterAndTask unlisted =
      parsed(R"({"cluster":{"ps":["p:1"],"worker":["a:1"]},)" + std::string(task));
  EXPECT_EQ(hash_of(listed.cluster), hash_of(unlisted.cluster));
}

class LocalTfConfig : public ::testing::TestWithParam<const char*> {};

TEST_P(LocalTfConfig, MeansToTrainLocally) {
  EXPECT_EQ(error_of(GetParam()), "no error");
  EXPECT_FALSE(parse_tf_config(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(
    Table, LocalTfConfig,
    ::testing::Values("", "  \n", "{}", R"({"cluster":{}})", R"({"cluster":null})",
                      R"({"cluster":{},"task":{"type":"worker","index":0}})",
                      R"({"cluster":{"ps":[],"worker":[]}})", R"({"environment":"cloud"})",
                      R"({"cluster":{"worker":["a:1"]},"task":{"type":"worker","index":0}})",
                      R"({"cluster":{"master":["a:1"]},"task":{"type":"master","index":0}})",
                      R"({"cluster":{"worker":["a:1"]}})"));

struct TfConfigCase {
  std::string json;
  const char* sentence;  // the expected part of the message
};
class BadTfConfig : public ::testing::TestWithParam<TfConfigCase> {};

TEST_P(BadTfConfig, IsRefusedWithASentence) {
  const std::string error = error_of(GetParam().json);
  EXPECT_THAT(error, HasSubstr(GetParam().sentence));
  EXPECT_THAT(error, ::testing::StartsWith("TF_CONFIG"));
}

INSTANTIATE_TEST_SUITE_P(
    Json, BadTfConfig,
    ::testing::Values(
        TfConfigCase{"{", "TF_CONFIG is not valid JSON at byte 2"},
        TfConfigCase{R"({"cluster":{"ps":['p:1']}})", R"(near ")"},
        TfConfigCase{"[]", "TF_CONFIG is []; expected {\"cluster\""},
        TfConfigCase{"5", "TF_CONFIG is 5"}, TfConfigCase{"\xFF", "not valid JSON"},
        TfConfigCase{"1" + std::string(400, '0'), "a number that is out of range"},
        TfConfigCase{R"({"cluster":[]})", "TF_CONFIG.cluster is []; expected a map"},
        TfConfigCase{R"({"cluster":{"ps":"p:1"}})",
                     "TF_CONFIG.cluster.ps is \"p:1\"; expected a list"},
        TfConfigCase{R"({"cluster":{"ps":[1]}})", "TF_CONFIG.cluster.ps[0] is 1; expected"},
        TfConfigCase{R"({"cluster":{"ps":["p"]}})", "TF_CONFIG.cluster.ps[0]: \"p\" has no port"},
        TfConfigCase{R"({"cluster":{"worker":{"x":"a:1"}}})",
                     "TF_CONFIG.cluster.worker has the key \"x\""},
        TfConfigCase{R"({"cluster":{"worker":{"-1":"a:1"}}})", "has the key \"-1\""},
        TfConfigCase{R"({"cluster":{"worker":{"4294967295":"a:1"}}})",
                     "expected an index from 0 to 9999"},
        TfConfigCase{R"({"cluster":{"worker":{"1":"a:1","01":"b:1"}}})", "is given twice"},
        TfConfigCase{R"({"cluster":{"chief":["c:1"],"Master":["d:1"]}})",
                     "name the same job; give it once"}));

INSTANTIATE_TEST_SUITE_P(
    Task, BadTfConfig,
    ::testing::Values(
        TfConfigCase{R"({"cluster":{"ps":["p:1"],"worker":["a:1"]}})", "TF_CONFIG.task is missing"},
        TfConfigCase{with_task("3"), "TF_CONFIG.task is 3; expected"},
        TfConfigCase{with_task("{}"), "TF_CONFIG.task.type is missing"},
        TfConfigCase{with_task(R"({"type":"gpu"})"),
                     "TF_CONFIG.task.type is \"gpu\"; expected chief"},
        TfConfigCase{with_task(R"({"type":7})"), "TF_CONFIG.task.type is 7"},
        TfConfigCase{with_task(R"({"type":"ps","index":"one"})"),
                     "TF_CONFIG.task.index is \"one\""},
        TfConfigCase{with_task(R"({"type":"ps","index":-1})"), "TF_CONFIG.task.index is -1"},
        TfConfigCase{with_task(R"({"type":"ps","index":0.5})"), "TF_CONFIG.task.index is 0.5"},
        TfConfigCase{with_task(R"({"type":"ps","index":""})"), "TF_CONFIG.task.index is \"\""},
        TfConfigCase{with_task(R"({"type":"ps","index":18446744073709551616})"),
                     "TF_CONFIG.task.index is"},
        TfConfigCase{with_task(R"({"type":"worker","index":2})"),
                     "TF_CONFIG.task.index is 2, but TF_CONFIG.cluster.worker has 2 addresses"},
        TfConfigCase{with_task(R"({"type":"chief","index":1})"), "only 0 is allowed"}));

INSTANTIATE_TEST_SUITE_P(
    Cluster, BadTfConfig,
    ::testing::Values(
        TfConfigCase{R"({"cluster":{"ps":["p:1"],"worker":["p:1"]},"task":{"type":"ps"}})",
                     "TF_CONFIG.cluster.ps[0] and TF_CONFIG.cluster.worker[0] are both \"p:1\""},
        TfConfigCase{R"({"cluster":{"ps":["p:1"],"master":["a:1","b:1"]},"task":{"type":"ps"}})",
                     "TF_CONFIG.cluster.master has 2 addresses"},
        TfConfigCase{R"({"cluster":{"worker":["a:1","b:1"]},"task":{"type":"worker"}})",
                     "TF_CONFIG.cluster.ps lists no address"},
        TfConfigCase{R"({"cluster":{"ps":{"1":"q:1"},"worker":["a:1"]},"task":{"type":"worker"}})",
                     "TF_CONFIG.cluster.ps has no entry for index 0"},
        // What Kubeflow's enableDynamicWorker gives a ps and a chief.
        TfConfigCase{R"({"cluster":{"ps":["q:1"]},"task":{"type":"ps","index":1}})",
                     "ps 1 lists its own address and no trainer; disttf must know"},
        TfConfigCase{R"({"cluster":{"worker":{},"ps":["q:1"]},"task":{"type":"ps","index":1}})",
                     "switch enableDynamicWorker off"},
        TfConfigCase{R"({"cluster":{"worker":{},"ps":[]},"task":{"type":"chief","index":0}})",
                     "TF_CONFIG.cluster lists no address, but TF_CONFIG.task is chief 0"},
        TfConfigCase{
            R"({"cluster":{"ps":["p:1"],"worker":{"1":"b:1"}},"task":{"type":"worker","index":0}})",
            "worker 0 must know how many there are"}));

TEST(TfConfig, ShowsOnlyTheBeginningOfAHugeValue) {
  const std::string huge(100000, 'x');
  EXPECT_LT(error_of(with_task(R"({"type":")" + huge + R"("})")).size(), 400U);
}

TEST(TfConfig, SurvivesDeepNesting) {
  const std::string open(60000, '[');
  const std::string shut(60000, ']');
  EXPECT_LT(error_of(open).size(), 400U);
  EXPECT_THAT(error_of(R"({"cluster":{"ps":)" + open + shut + "}}"),
              HasSubstr("TF_CONFIG.cluster.ps[0] is a list; expected"));
}

}  // namespace
}  // namespace disttf::net
