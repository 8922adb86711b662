// How a task finds its role: from the flags, from TF_CONFIG, and when the two disagree.
#include "main/flags/cluster.h"

#include <gmock/gmock.h>

#include <string>

#include "net/wire/cluster.h"
#include "tests/main/command_lines.h"

namespace disttf {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// The lists name other machines, so each line needs a secret, or --insecure.
std::string own_task(const std::string& line, const std::string& tf_config = {}) {
  return net::to_string(parse_task(line + " --insecure", {{"TF_CONFIG", tf_config}}).task.self);
}
std::string refused(const std::string& line, const std::string& tf_config = {}) {
  return refusal(line, {{"TF_CONFIG", tf_config}});
}

std::string tf_config(const std::string& task) {
  return R"({"cluster":{"ps":["ps0:2222"],"worker":["w0:2222","w1:2222"]},"task":)" + task +
         R"(,"environment":"cloud"})";
}

// ---- Flags ----

TEST(ClusterFromFlags, TheCommandIsTheJob) {
  EXPECT_EQ(own_task("ps" + kHosts), "ps 0");
  EXPECT_EQ(own_task("worker --task_index 1" + kHosts), "worker 1");
  EXPECT_EQ(own_task("chief --chief_host c:1" + kHosts), "chief 0");
}

TEST(ClusterFromFlags, JobNameIsTheJobWithoutACommand) {
  EXPECT_EQ(own_task("--job_name=ps --task_index=0" + kHosts), "ps 0");
  EXPECT_EQ(own_task("--job_name worker --task_index 1" + kHosts), "worker 1");
  EXPECT_EQ(own_task("--job_name chief --chief_host c:1" + kHosts), "chief 0");
  EXPECT_EQ(own_task("--job_name master --chief_host c:1" + kHosts), "chief 0");
  EXPECT_EQ(own_task("train --job_name=ps" + kHosts), "ps 0");
}

TEST(ClusterFromFlags, JobNameMayRepeatTheCommand) {
  EXPECT_EQ(own_task("worker --job_name worker --task_index 1" + kHosts), "worker 1");
  EXPECT_EQ(refused("ps --job_name worker --task_index 0" + kHosts),
            "--job_name: \"worker\" contradicts the command ps");
}

TEST(ClusterFromFlags, KeepsTheListsInOrder) {
  const net::Cluster cluster =
      parse_task("worker --task_index 2 --ps_hosts=b:1,a:1 --worker_hosts=z:1,y:2,x:3 --insecure")
          .task.cluster;
  EXPECT_EQ(net::to_string(cluster.ps.at(0)), "b:1");
  EXPECT_EQ(net::to_string(cluster.workers.at(2)), "x:3");
}

TEST(ClusterFromFlags, RefusesAnIndexOutOfRange) {
  EXPECT_THAT(refused("worker --task_index 99" + kHosts),
              AllOf(StartsWith("--task_index"), HasSubstr("99"), HasSubstr("0"), HasSubstr("1")));
}

TEST(ClusterFromFlags, WantsAnIndexWhereThereIsAChoice) {
  EXPECT_EQ(refused("worker" + kHosts),
            "--task_index: missing; there are 2 worker tasks, so 0 to 1");
}

TEST(ClusterFromFlags, WantsToKnowTheJob) {
  EXPECT_THAT(refused("train --task_index 0" + kHosts), StartsWith("--job_name: missing;"));
  EXPECT_EQ(refused("--job_name boss --task_index 0" + kHosts),
            "--job_name: \"boss\" is not ps, worker or chief");
}

TEST(ClusterFromFlags, WantsBothLists) {
  EXPECT_THAT(refused("worker --task_index 0"), StartsWith("--ps_hosts: missing;"));
  EXPECT_THAT(refused("worker --task_index 0 --worker_hosts=w0:1"), HasSubstr("--ps_hosts"));
  EXPECT_THAT(refused("ps --task_index 0 --ps_hosts=p:1"), HasSubstr("--worker_hosts"));
}

TEST(ClusterFromFlags, RefusesAMalformedAddressByFieldAndValue) {
  EXPECT_THAT(refused("ps --ps_hosts=a --worker_hosts=b:1"),
              AllOf(HasSubstr("--ps_hosts"), HasSubstr("\"a\"")));
  EXPECT_THAT(refused("ps --ps_hosts=a:1 --worker_hosts=b:99999"),
              AllOf(HasSubstr("--worker_hosts"), HasSubstr("99999")));
}

TEST(ClusterFromFlags, RefusesTwoChiefs) {
  EXPECT_THAT(refused("chief --chief_host=c:1,d:1" + kHosts), HasSubstr("--chief_host"));
}

TEST(ClusterFromFlags, AnIndexNeedsACluster) {
  EXPECT_THAT(refused("train --task_index 3"), StartsWith("--task_index: 3 needs a cluster"));
}

// ---- TF_CONFIG ----

TEST(ClusterFromTfConfig, SaysWhoThisIs) {
  EXPECT_EQ(own_task("train", tf_config(R"({"type":"worker","index":1})")), "worker 1");
  EXPECT_EQ(own_task("train", tf_config(R"({"type":"ps","index":0})")), "ps 0");
}

TEST(ClusterFromTfConfig, IsEnoughWithoutAnyArgument) {
  EXPECT_EQ(own_task("", tf_config(R"({"type":"worker","index":1})")), "worker 1");
}

TEST(ClusterFromTfConfig, TakesAnIndexInQuotes) {
  EXPECT_EQ(own_task("train", tf_config(R"({"type":"worker","index":"1"})")), "worker 1");
}

TEST(ClusterFromTfConfig, TakesAnyLetterCase) {
  EXPECT_EQ(own_task("train", tf_config(R"({"type":"WORKER","index":1})")), "worker 1");
  EXPECT_EQ(own_task("train", R"({"cluster":{"PS":["p:1"],"Worker":["w:1"]},
                                  "task":{"type":"Ps","index":0}})"),
            "ps 0");
}

TEST(ClusterFromTfConfig, MasterIsTheChief) {
  const std::string config = R"({"cluster":{"master":["m:1"],"ps":["p:1"],"worker":["w:1"]},
                                 "task":{"type":"master","index":0}})";
  EXPECT_EQ(own_task("train", config), "chief 0");
  EXPECT_EQ(own_task("chief", config), "chief 0");
}

TEST(ClusterFromTfConfig, ServesACommandWithoutLists) {
  EXPECT_EQ(own_task("worker", tf_config(R"({"type":"worker","index":1})")), "worker 1");
  EXPECT_EQ(own_task("worker --task_index 1", tf_config(R"({"type":"worker","index":1})")),
            "worker 1");
}

TEST(ClusterFromTfConfig, MustAgreeWithTheCommand) {
  EXPECT_EQ(refused("ps", tf_config(R"({"type":"worker","index":1})")),
            "TF_CONFIG.task.type: this is worker 1 there, but the command line says ps");
  EXPECT_EQ(refused("--job_name=ps", tf_config(R"({"type":"worker","index":1})")),
            "TF_CONFIG.task.type: this is worker 1 there, but the command line says ps");
}

TEST(ClusterFromTfConfig, MustAgreeWithTheIndex) {
  EXPECT_EQ(refused("worker --task_index 0", tf_config(R"({"type":"worker","index":1})")),
            "TF_CONFIG.task.index: this is worker 1 there, but --task_index is 0");
}

TEST(ClusterFromTfConfig, MayAgreeWithTheLists) {
  EXPECT_EQ(own_task("worker --task_index 1" + kHosts, tf_config(R"({"type":"worker","index":1})")),
            "worker 1");
}

TEST(ClusterFromTfConfig, MustAgreeWithTheLists) {
  const std::string sentence =
      "TF_CONFIG and the flags describe different clusters or tasks (worker 1 and worker 0); give "
      "one of them, or select one with --resolver";
  EXPECT_EQ(refused("worker --task_index 0" + kHosts, tf_config(R"({"type":"worker","index":1})")),
            sentence);
  EXPECT_THAT(refused("worker --task_index 1 --ps_hosts=other:1 --worker_hosts=w0:2222,w1:2222",
                      tf_config(R"({"type":"worker","index":1})")),
              StartsWith("TF_CONFIG and the flags describe different clusters"));
}

TEST(ClusterFromTfConfig, FaultsAreToldByField) {
  EXPECT_THAT(refused("train", "{"), StartsWith("TF_CONFIG is not valid JSON"));
  EXPECT_THAT(refused("train", tf_config(R"({"type":"worker","index":7})")),
              AllOf(HasSubstr("TF_CONFIG.task.index"), HasSubstr("7")));
  EXPECT_THAT(refused("train", tf_config(R"({"type":"boss","index":0})")),
              AllOf(HasSubstr("TF_CONFIG.task.type"), HasSubstr("boss")));
}

TEST(ClusterFromTfConfig, WarningsReachTheLog) {
  const Invocation invocation =
      parse("train --insecure",
            {{"TF_CONFIG", R"({"cluster":{"ps":["p:1"],"worker":["w:1"],"gpu":["g:1"]},
                                        "task":{"type":"worker","index":0}})"}});
  ASSERT_EQ(invocation.warnings.size(), 1U);
  EXPECT_THAT(invocation.warnings.front(), HasSubstr("\"gpu\""));
}

// ---- Other environments: see tests/net/resolvers_test.cc for their cases ----

const Environment kNomad = {{"NOMAD_GROUP_NAME", "ps"}, {"NOMAD_ALLOC_INDEX", "1"}};
const std::string kPattern = " --ps 2 --workers 3 --task_hosts m-{job}-{index}.m:2222 --insecure ";

TEST(ClusterFromTheEnvironment, TakesTheFlagsOfEachTask) {
  EXPECT_EQ(net::to_string(parse_task("train" + kPattern, kNomad).task.self), "ps 1");
  EXPECT_EQ(net::to_string(parse_task("ps" + kPattern, kNomad).task.self), "ps 1");
  EXPECT_EQ(own_task("worker --task_index 2 -w 3 -s 2 --chief=false --task-hosts {job}{index}:1"),
            "worker 2");
  EXPECT_EQ(refusal("chief --chief" + kPattern, kNomad),
            "NOMAD_GROUP_NAME: this is ps 1 there, but the command line says chief");
}

TEST(ClusterFromTheEnvironment, OfTfMesosIsEnoughWithoutAnyArgument) {
  const roles::TrainerOptions options =
      parse_task("", {{"TFMESOS_DISTRIBUTED", "1"},
                      {"TFMESOS_PS_HOSTS", "localhost:1"},
                      {"TFMESOS_WORKER_HOSTS", "localhost:2,localhost:3"},
                      {"TFMESOS_JOB_NAME", "worker"},
                      {"TFMESOS_TASK_INDEX", "1"}});
  EXPECT_EQ(net::to_string(options.task.self), "worker 1");
}

TEST(ClusterFromTheEnvironment, IsNotAskedByLaunchsChildren) {
  EXPECT_EQ(
      net::to_string(parse_task("worker --listen_fd 3 --task_index 1" + kHosts,
                                {{"TFMESOS_DISTRIBUTED", "1"}, {"TFMESOS_PS_HOSTS", "other:1"}})
                         .task.self),
      "worker 1");
}

TEST(ClusterFromTheEnvironment, IsOneLineInTheLog) {
  EXPECT_THAT(parse("train" + kPattern, kNomad).summary,
              testing::MatchesRegex("resolver nomad: this is ps 1 \\(not the chief, worker 0 is\\) "
                                    "of cluster [0-9a-f]+, 2 ps and 3 trainers"));
  EXPECT_THAT(parse("worker --task_index 0" + kHosts).summary,
              StartsWith("resolver flags: this is worker 0 (the chief) of cluster "));
  EXPECT_EQ(parse("train").summary,
            "resolver local: no cluster is described; training on this machine");
  EXPECT_EQ(parse("worker --listen_fd 3 --task_index 0" + kHosts).summary, "");
}

TEST(ClusterFromTheEnvironment, ThatIsNotUsedIsAWarning) {
  EXPECT_THAT(parse("train", kNomad).warnings,
              testing::ElementsAre(HasSubstr("NOMAD_ALLOC_INDEX")));
}

TEST(ClusterFromTheEnvironment, IsSwitchedOffByName) {
  EXPECT_EQ(parse_launch("train --resolver local", {{"TF_CONFIG", tf_config("{}")}}).workers, 1U);
  EXPECT_THAT(parse_launch("train --resolver=local").task_arguments, testing::IsEmpty());
  EXPECT_THAT(refused("train --resolver docker"),
              AllOf(StartsWith("--resolver: \"docker\" is not"), HasSubstr("indexed_job")));
}

// ---- disttf resolve ----

std::string resolved(const std::string& line, const Environment& environment = {}) {
  return action_of<Print>("resolve " + line, environment).text;
}

TEST(Resolve, SaysInOneLineWhoThisIs) {
  EXPECT_THAT(resolved("" + kPattern, kNomad), StartsWith("resolver nomad: this is ps 1 ("));
  EXPECT_THAT(resolved("worker --task_index 1" + kHosts),
              StartsWith("resolver flags: this is worker 1"));
  EXPECT_EQ(resolved(""), "resolver local: no cluster is described; training on this machine\n");
}

TEST(Resolve, PrintsWhatWasFoundAndWhere) {
  EXPECT_THAT(resolved("--print --log_level off --train_steps 7" + kPattern, kNomad),
              testing::MatchesRegex(
                  "resolver    nomad\n"
                  "task        ps 1 +not the chief, worker 0 is\n"
                  "cluster     [0-9a-f]+ +its hash, the same for all tasks\n"
                  "job         ps +NOMAD_GROUP_NAME\n"
                  "index       1 +NOMAD_ALLOC_INDEX\n"
                  "ps          m-ps-0.m:2222,m-ps-1.m:2222 +--task_hosts\n"
                  "workers     m-worker-0.m:2222,m-worker-1.m:2222,m-worker-2.m:2222 +--task_hosts"
                  "\n"));
  EXPECT_THAT(resolved("--print", kNomad),
              "resolver    local\n"
              "warning     NOMAD_ALLOC_INDEX is set, but without --task_hosts this task trains "
              "alone\n");
}

TEST(Resolve, PrintsJsonThatIsATfConfig) {
  const std::string json = resolved("--json --chief" + kPattern, kNomad);
  EXPECT_THAT(resolved("--json", {{"TF_CONFIG", json}}), HasSubstr(R"("resolver":"tf_config")"));
  EXPECT_EQ(net::hash_of(parse_task("--insecure", {{"TF_CONFIG", json}}).task.cluster),
            net::hash_of(parse_task("ps --chief" + kPattern, kNomad).task.cluster));
  EXPECT_EQ(resolved("--json"), "{\"facts\":[],\"resolver\":\"local\",\"warnings\":[]}\n");
}

TEST(Resolve, KeepsTheGapsOfASparseCluster) {
  const std::string sparse = R"({"cluster":{"ps":["p:1"],"worker":{"2":"w:1"}},
                                 "task":{"type":"worker","index":2}})";
  EXPECT_THAT(resolved("--json", {{"TF_CONFIG", sparse}}), HasSubstr(R"("worker":{"2":"w:1"})"));
  EXPECT_THAT(resolved("--print", {{"TF_CONFIG", sparse}}), HasSubstr("?,?,w:1"));
}

TEST(Resolve, TakesTheTaskBehindItsOwnFlags) {
  EXPECT_EQ(resolved("--print ps --task_index 0" + kHosts),
            resolved("ps --task_index 0 --print" + kHosts));
  EXPECT_EQ(resolved("--print true"), resolved("--print"));
}

TEST(Resolve, RefusesAsTheTaskWould) {
  EXPECT_EQ(
      refused("resolve boss"),
      "resolve: \"boss\" is not ps, worker, chief, evaluator or train (see disttf resolve --help)");
  EXPECT_THAT(refused("resolve worker"), StartsWith("--ps_hosts: missing; worker needs"));
  EXPECT_EQ(refused("resolve worker --job_name ps" + kHosts),
            "--job_name: \"ps\" contradicts the command worker");
}

// ---- The tutorials' own lines ----

struct Tutorial {
  const char* name;
  const char* line;
  const char* task;
  friend std::ostream& operator<<(std::ostream& out, const Tutorial& t) { return out << t.name; }
};

class Tutorials : public testing::TestWithParam<Tutorial> {};

TEST_P(Tutorials, AreUnderstood) { EXPECT_EQ(own_task(GetParam().line), GetParam().task); }

constexpr Tutorial kTutorials[] = {
    {"KubernetesPs",
     "--ps_hosts=10.0.0.1:2222,10.0.0.2:2222 --worker_hosts=10.0.0.3:2222,10.0.0.4:2222 "
     "--job_name=ps --task_index=1",
     "ps 1"},
    {"KubernetesWorker",
     "--ps_hosts=10.0.0.1:2222,10.0.0.2:2222 --worker_hosts=10.0.0.3:2222,10.0.0.4:2222 "
     "--job_name=worker --task_index=0",
     "worker 0"},
    {"EcosystemTemplate",
     "--task_index=1 --job_name=worker --worker_hosts=mnist-worker-0:5000,mnist-worker-1:5000 "
     "--ps_hosts=mnist-ps-0:5000",
     "worker 1"},
    {"KeldaPs",
     "--job_name ps --task_index 0 --ps_hosts ps.q:2222 --worker_hosts "
     "worker.q:2222,worker2.q:2222",
     "ps 0"},
    {"KeldaWorker",
     "--job_name worker --task_index 1 --ps_hosts ps.q:2222 --worker_hosts "
     "worker.q:2222,worker2.q:2222",
     "worker 1"},
    {"TfMesos",
     "--ps_hosts agent1:31001 --worker_hosts agent2:31002,agent3:31003 --job_name "
     "worker --worker_index 1",
     "worker 1"},
    {"Marathon",
     "--worker_hosts worker-0-mnist.marathon.mesos:2333,worker-1-mnist.marathon.mesos:2334 "
     "--ps_hosts ps-0-mnist.marathon.mesos:2335 --job_name worker --task_index 1 --train_dir "
     "/mnt/train --sync_replica True --train_steps 2000",
     "worker 1"},
    {"MarathonWithDataDir",
     "--worker_hosts worker-0-mnist.marathon.mesos:2333 --ps_hosts "
     "ps-0-mnist.marathon.mesos:2334 --job_name ps --task_index 0 --data_dir /data --train_dir "
     "/mnt/train",
     "ps 0"},
    {"FourTerminals",
     "worker --task_index 1 --ps_hosts 127.0.0.1:2222 --worker_hosts "
     "127.0.0.1:2223,127.0.0.1:2224",
     "worker 1"},
};

INSTANTIATE_TEST_SUITE_P(CommandLine, Tutorials, testing::ValuesIn(kTutorials),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(TutorialsTfConfig, OfTheOpenShiftWorkshopIsUnderstood) {
  const std::string config = R"({
     "cluster":{
        "master":["distributed-mnist-chief-5oz2-0:2222"],
        "ps":["distributed-mnist-ps-5oz2-0:2222"],
        "worker":["distributed-mnist-worker-5oz2-0:2222","distributed-mnist-worker-5oz2-1:2222"]
     },
     "task":{"type":"worker","index":1},
     "environment":"cloud"
  })";
  const roles::TrainerOptions options = parse_task("train --insecure", {{"TF_CONFIG", config}});
  EXPECT_EQ(net::to_string(options.task.self), "worker 1");
  EXPECT_EQ(options.config.trainers, 3U);
  EXPECT_FALSE(options.task.cluster.is_chief(options.task.self));
}

// The effect of --min_workers, --max_workers and --micro_batches on the cluster and the run.

TEST(ElasticFlags, MaxWorkersIsTheNumberOfMicroBatches) {
  const roles::TrainerOptions worker = parse_task("worker --task_index 1 --max_workers 5" + kHosts);
  EXPECT_EQ(worker.task.cluster.trainer_count(), 5U);
  EXPECT_EQ(worker.config.trainers, 5U);
  EXPECT_EQ(worker.config.micro_batches, 5U);
  EXPECT_EQ(worker.config.min_workers, 1U);
}

TEST(ElasticFlags, AChiefTaskTakesAMicroBatchToo) {
  const roles::TrainerOptions chief = parse_task("chief --chief_host c:1 --max_workers 5" + kHosts);
  EXPECT_EQ(chief.config.micro_batches, 6U);
}

TEST(ElasticFlags, MicroBatchesNeedNotBeThatMany) {
  EXPECT_EQ(parse_task("ps --max_workers 5 --micro_batches 8" + kHosts).config.micro_batches, 8U);
}

TEST(ElasticFlags, AsynchronousTrainersNeedNoMicroBatches) {
  const roles::TrainerOptions ps = parse_task("ps --max_workers 5 --sync_replicas=false" + kHosts);
  EXPECT_EQ(ps.config.trainers, 5U);
  EXPECT_FALSE(ps.config.elastic());
}

TEST(ElasticFlags, LaunchStartsFewerThanMayJoin) {
  const roles::LaunchOptions launch = parse_launch("launch --workers 2 --max_workers 4");
  EXPECT_EQ(launch.workers, 2U);
  EXPECT_THAT(launch.task_arguments, testing::Contains("--max_workers=4"));
}

TEST(ElasticFlags, RefusesLessThanThereAre) {
  EXPECT_EQ(refusal("ps --max_workers 1" + kHosts),
            "--max_workers: 1 is less than the 2 workers that the cluster lists");
  EXPECT_EQ(refusal("launch --workers 3 --max_workers 2"),
            "--max_workers: 2 is less than the 3 of --workers");
  EXPECT_EQ(refusal("render slurm --insecure --workers 3 --max_workers 2"),
            "--max_workers: 2 is less than the 3 of --workers");
}

TEST(ElasticFlags, RefusesWhatDoesNotGoTogether) {
  EXPECT_EQ(refusal("ps --max_workers 3 --replicas_to_aggregate 2" + kHosts),
            "--max_workers: 3 is not allowed with --replicas_to_aggregate");
  EXPECT_THAT(refusal("ps --max_workers 3 --min_workers 4" + kHosts),
              HasSubstr("--min_workers: 4 is more than the 3 trainers"));
}

TEST(ElasticFlags, ResolveTellsHowManyMayJoin) {
  const std::string line = " worker --task_index 1 --max_workers 4" + kHosts;
  const auto resolved = [&](const std::string& flags) {
    return action_of<Print>("resolve " + flags + line).text;
  };
  EXPECT_THAT(resolved(""), HasSubstr("at most 4 trainers"));
  EXPECT_THAT(resolved("--print"), HasSubstr("max_workers  4"));
  EXPECT_THAT(resolved("--json"), HasSubstr(R"("worker":["w0:2222","w1:2222"])"));
}

}  // namespace
}  // namespace disttf
