// The identity of a task if flags, TF_CONFIG or TFMesos give the whole cluster, and if MPI gives
// too little: tables of valid and of broken settings.
#include "net/resolvers/resolvers.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>

#include "tests/net/resolver_cases.h"

namespace disttf::net {
namespace {

using ::testing::StartsWith;

// Expects exactly this result.
class Resolvers : public ::testing::TestWithParam<Case> {};
TEST_P(Resolvers, Tell) {
  EXPECT_EQ(told(GetParam().flags, GetParam().environment), GetParam().answer);
}

// Expects a one-line message that begins like this.
class ResolversRefuse : public ::testing::TestWithParam<Case> {};
TEST_P(ResolversRefuse, InOneSentence) {
  const std::string sentence = told(GetParam().flags, GetParam().environment);
  EXPECT_THAT(sentence, StartsWith(GetParam().answer));
  EXPECT_LT(sentence.size(), 600U);
  EXPECT_TRUE(std::ranges::all_of(sentence, [](char c) { return c >= 0x20 && c < 0x7F; }));
}

// ---- Flags ----

INSTANTIATE_TEST_SUITE_P(
    Flags, Resolvers,
    ::testing::Values(
        row("Lists", lists(Job::kWorker, 1), {},
            "flags: worker 1 of ps p:1 chief  worker w0:1,w1:1"),
        row("Pattern",
            {.job = Job::kPs,
             .task_index = 1,
             .ps = 2,
             .workers = 3,
             .task_hosts = "m-{job}-{index}.m:2222"},
            {}, "flags: ps 1" + kM),
        row("PatternWithOnePs", {.job = Job::kPs, .ps = 1, .workers = 1, .task_hosts = "{job}:1"},
            {}, "flags: ps 0 of ps ps:1 chief  worker worker:1"),
        row("PatternOfPorts",
            {.job = Job::kWorker,
             .task_index = 1,
             .ps = 1,
             .workers = 2,
             .chief = true,
             .task_hosts = "h:{port}",
             .port_base = 4000},
            {}, "flags: worker 1 of ps h:4000 chief h:4001 worker h:4002,h:4003"),
        row("PatternOfPlaces",
            {.job = Job::kChief, .ps = 1, .workers = 1, .chief = true, .task_hosts = "m-{place}:1"},
            {}, "flags: chief 0 of ps m-0:1 chief m-1:1 worker m-2:1"),
        row("PatternOnAMachineOfSomeName",
            {.job = Job::kPs,
             .task_index = 1,
             .ps = 2,
             .workers = 3,
             .task_hosts = "m-{job}-{index}.m:2222"},
            {{"HOSTNAME", "gpu-worker-3"}, {"MARATHON_APP_ID", "/mnist/trainer"}},
            "flags: ps 1" + kM),
        row("CountsThatAgree",
            {.job = Job::kPs, .ps_hosts = "p:1", .worker_hosts = "w:1", .ps = 1, .workers = 1}, {},
            "flags: ps 0 of ps p:1 chief  worker w:1"),
        row("Nothing", {}, {}, "local"), row("Local", named("local"), {}, "local")),
    kNameOf);

INSTANTIATE_TEST_SUITE_P(
    Flags, ResolversRefuse,
    ::testing::Values(
        row("CountsThatDoNot",
            {.job = Job::kPs, .ps_hosts = "p:1", .worker_hosts = "w:1", .ps = 1, .workers = 2}, {},
            "--workers: 2 is not the number of workers, 1, in --worker_hosts"),
        row("ChiefThatIsNotListed",
            {.job = Job::kPs, .ps_hosts = "p:1", .worker_hosts = "w:1", .chief = true}, {},
            "--chief: true, but --ps_hosts has no chief task"),
        row("ListsAndPattern",
            {.job = Job::kPs, .ps_hosts = "p:1", .worker_hosts = "w:1", .task_hosts = "x:1"}, {},
            "--task_hosts: \"x:1\" is not allowed beside"),
        row("PatternWithoutJob", pattern(), {}, "--job_name: missing; with --task_hosts"),
        row("PatternWithoutIndex", with_job(pattern(), Job::kWorker), {},
            "--task_index: missing; there are 3 worker tasks, so 0 to 2"),
        row("PatternWithoutWorkers", {.job = Job::kChief, .ps = 1, .task_hosts = "{job}:1"}, {},
            "--workers: missing; with --task_hosts"),
        row("PatternWithoutPs", {.job = Job::kChief, .task_hosts = "{job}:1"}, {},
            "--ps: missing; with --task_hosts"),
        row("IndexBeyond",
            {.job = Job::kPs, .task_index = 2, .ps = 2, .workers = 1, .task_hosts = "h-{place}:1"},
            {}, "--task_index is 2, but --task_hosts of ps has 2 addresses"),
        row("NobodyTrains", {.job = Job::kPs, .ps = 1, .workers = 0, .task_hosts = "{job}:1"}, {},
            "--workers: must be at least 1 without --chief (got 0)"),
        row("CountsAlone", {.ps = 1, .workers = 2}, {},
            "--ps: given, but the addresses of the tasks are unknown"),
        row("JobAlone", {.job = Job::kWorker}, {}, "--ps_hosts: missing; worker needs"),
        row("IndexAgainstNomad",
            {.job = Job::kPs,
             .task_index = 0,
             .ps = 2,
             .workers = 3,
             .task_hosts = "{job}{index}:1"},
            {{"NOMAD_GROUP_NAME", "ps"}, {"NOMAD_ALLOC_INDEX", "1"}},
            "NOMAD_ALLOC_INDEX: this is ps 1 there, but --task_index is 0"),
        row("IndexAlone", {.task_index = 3}, {}, "--task_index: 3 needs a cluster"),
        row("LocalWorker", named("local", {.job = Job::kWorker}), {},
            "--resolver: local trains on this machine, but the command line says worker"),
        row("UnknownResolver", named("docker"), {},
            "--resolver: \"docker\" is not one of auto, flags, tf_config, tfmesos, nomad, "
            "indexed_job, slurm, marathon, statefulset, local")),
    kNameOf);

INSTANTIATE_TEST_SUITE_P(
    Pattern, ResolversRefuse,
    ::testing::Values(
        row("UnknownWord", with_job(pattern("{place}{jobs}:1"), Job::kChief), {},
            "--task_hosts: \"{place}{jobs}:1\" has \"jobs\" in braces; job, index, place, port and "
            "host are known"),
        row("UnknownBytes", with_job(pattern("{place}{\xF3\n}:1"), Job::kChief), {},
            "--task_hosts: \"{place}{\\xf3\\n}:1\" has \"\\xf3\\n\" in braces"),
        row("OpenBrace", with_job(pattern("{job}-{index:1"), Job::kChief), {}, "--task_hosts: \""),
        row("ShutBrace", with_job(pattern("{job}-{index}}:1"), Job::kChief), {},
            "--task_hosts: \"{job}-{index}}:1\" has a brace without its partner"),
        row("NoPort", with_job(pattern("{job}-{index}"), Job::kChief), {},
            "--task_hosts: \"ps-0\""),
        row("NoJob", with_job(pattern("{index}:1"), Job::kChief), {},
            "--task_hosts: \"{index}:1\" gives a ps and a worker one address"),
        row("NoIndex", with_job(pattern("{job}:1"), Job::kChief), {},
            "--task_hosts: \"{job}:1\" gives tasks of one job one address"),
        row("HostWithoutSlurm", with_job(pattern("{host}-{place}:1"), Job::kChief), {},
            "--task_hosts: \"{host}-{place}:1\" has {host}, which only Slurm provides"),
        row("PortBeyond",
            {.job = Job::kChief,
             .ps = 1,
             .workers = 1,
             .task_hosts = "h:{port}",
             .port_base = 65535},
            {}, "--port_base: 65535 and 2 tasks lead beyond the last port, 65535"),
        row("Huge", with_job(pattern(std::string(100'000, 'x')), Job::kChief), {},
            "--task_hosts: \"xxxx")),
    kNameOf);

// ---- TF_CONFIG and TFMesos ----

[[nodiscard]] Environment tf_config(const std::string& task) {
  return {
      {"TF_CONFIG", R"({"cluster":{"ps":["p:1"],"worker":["w0:1","w1:1"]},"task":)" + task + "}"}};
}
[[nodiscard]] Environment tfmesos(const char* name, const char* value) {
  Environment environment = {{"TFMESOS_DISTRIBUTED", "1"},
                             {"TFMESOS_PS_HOSTS", "p:1"},
                             {"TFMESOS_WORKER_HOSTS", "w0:1,w1:1"},
                             {"TFMESOS_JOB_NAME", "worker"},
                             {"TFMESOS_TASK_INDEX", "1"}};
  environment[name] = value;
  return environment;
}
[[nodiscard]] Environment tfmesos() { return tfmesos("TFMESOS_TASK_INDEX", "1"); }
const std::string kSecondWorker = R"({"type":"worker","index":"1"})";

const std::string kPw = " of ps p:1 chief  worker w0:1,w1:1";

INSTANTIATE_TEST_SUITE_P(
    WholeClusters, Resolvers,
    ::testing::Values(
        row("TfConfig", {}, tf_config(kSecondWorker), "tf_config: worker 1" + kPw),
        row("TfConfigEvaluatorOutOfTheCluster", {}, tf_config(R"({"type":"evaluator","index":0})"),
            "tf_config: evaluator 0" + kPw),
        row("TfConfigOfOneTask", {},
            {{"TF_CONFIG", R"({"cluster":{"worker":["w:1"]},"task":{"type":"worker"}})"}}, "local"),
        row("TfConfigSparseCluster", {},
            {{"TF_CONFIG", R"({"sparseCluster":{"ps":["p:1"],"worker":{"0":"w:1"}},)"
                           R"("task":{"type":"worker","index":0}})"}},
            "tf_config: worker 0 of ps p:1 chief  worker w:1"),
        row("TfMesos", {}, tfmesos(), "tfmesos: worker 1" + kPw),
        row("TfMesosPs", {}, tfmesos("TFMESOS_JOB_NAME", "worker"), "tfmesos: worker 1" + kPw),
        row("TfMesosSwitchedOff", {}, tfmesos("TFMESOS_DISTRIBUTED", "0"), "local"),
        row("TfMesosTwoThatAgree", {}, both(tf_config(kSecondWorker), tfmesos()),
            "tf_config: worker 1" + kPw),
        row("TfMesosFlagsThatAgree", lists(Job::kWorker, 1), tfmesos(), "flags: worker 1" + kPw),
        row("NamedAgainstFlags", named("tf_config", {.ps_hosts = "x:1", .worker_hosts = "y:1"}),
            tf_config(kSecondWorker), "tf_config: worker 1" + kPw),
        row("NamedFlags", named("flags", lists(Job::kPs, 0)), tf_config(kSecondWorker),
            "flags: ps 0" + kPw),
        row("NamedTfMesos", named("tfmesos"),
            both(tf_config(R"({"type":"ps","index":0})"), tfmesos()), "tfmesos: worker 1" + kPw),
        row("NamedLocal", named("local"), tf_config(kSecondWorker), "local")),
    kNameOf);

INSTANTIATE_TEST_SUITE_P(
    WholeClusters, ResolversRefuse,
    ::testing::Values(
        row("TfMesosSwitch", {}, tfmesos("TFMESOS_DISTRIBUTED", "yes"),
            "TFMESOS_DISTRIBUTED is \"yes\"; expected 1 or 0"),
        row("TfMesosJob", {}, tfmesos("TFMESOS_JOB_NAME", "boss"),
            "TFMESOS_JOB_NAME is \"boss\"; expected ps or worker"),
        row("TfMesosIndex", {}, tfmesos("TFMESOS_TASK_INDEX", "-1"),
            "TFMESOS_TASK_INDEX is \"-1\"; expected a whole number from 0 to 9999"),
        row("TfMesosIndexBeyond", {}, tfmesos("TFMESOS_TASK_INDEX", "2"),
            "TFMESOS_TASK_INDEX is 2, but TFMESOS_WORKER_HOSTS has 2 addresses"),
        row("TfMesosNoPs", {}, tfmesos("TFMESOS_PS_HOSTS", " "),
            "TFMESOS_PS_HOSTS is not set; TFMESOS_DISTRIBUTED=1 comes together with it"),
        row("TfMesosBadHost", {}, tfmesos("TFMESOS_PS_HOSTS", "a"), "TFMESOS_PS_HOSTS: \"a\""),
        row("TfMesosTwice", {}, tfmesos("TFMESOS_PS_HOSTS", "w0:1"),
            "TFMESOS_PS_HOSTS[0] and TFMESOS_WORKER_HOSTS[0] are both \"w0:1\""),
        row("TfMesosAgainstTfConfig", {}, both(tf_config(R"({"type":"ps"})"), tfmesos()),
            "TFMESOS_* and TF_CONFIG describe different clusters or tasks (worker 1 and ps 0); "
            "give one of them, or select one with --resolver"),
        row("FlagsAgainstTfConfig", lists(Job::kWorker, 0), tf_config(kSecondWorker),
            "TF_CONFIG and the flags describe different clusters or tasks"),
        // The same hosts in another order are another cluster: tasks would wait for each other.
        row("OrderAgainstTfConfig", {},
            both(tf_config(kSecondWorker), tfmesos("TFMESOS_WORKER_HOSTS", "w1:1,w0:1")),
            "TFMESOS_* and TF_CONFIG describe different clusters or tasks (worker 1 and worker 1)"),
        row("JobAgainstTfMesos", {.job = Job::kPs}, tfmesos(),
            "TFMESOS_JOB_NAME: this is worker 1 there, but the command line says ps"),
        row("IndexAgainstTfMesos", {.task_index = 0}, tfmesos(),
            "TFMESOS_TASK_INDEX: this is worker 1 there, but --task_index is 0"),
        row("CountAgainstTfConfig", {.workers = 3}, tf_config(kSecondWorker),
            "--workers: 3 is not the number of workers, 2, in TF_CONFIG"),
        row("PatternAgainstTfConfig", {.ps = 1, .workers = 2, .task_hosts = "{job}{index}:1"},
            tf_config(kSecondWorker),
            "--task_hosts: \"{job}{index}:1\" and the counts make another"),
        row("NamedButBroken", named("tf_config"), {{"TF_CONFIG", "{"}}, "TF_CONFIG is not valid"),
        row("NamedButNotThere", named("tf_config"), {},
            "--resolver: tf_config needs TF_CONFIG with a cluster, which is not there"),
        row("FlagsNamedButNotThere", named("flags"), tf_config(kSecondWorker),
            "--ps_hosts: missing")),
    kNameOf);

// ---- MPI, torchrun ----

INSTANTIATE_TEST_SUITE_P(
    RankOnly, ResolversRefuse,
    ::testing::Values(
        row("OpenMpi", {}, {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "4"}},
            "OMPI_COMM_WORLD_RANK is \"1\" of OMPI_COMM_WORLD_SIZE \"4\": Open MPI numbers the "
            "tasks but provides no addresses; give each"),
        row("OtherMpi", {}, {{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}, "PMI_RANK is \"0\" of"),
        row("Torchrun", {},
            {{"RANK", "0"},
             {"WORLD_SIZE", "2"},
             {"LOCAL_RANK", "0"},
             {"GROUP_RANK", "0"},
             {"LOCAL_WORLD_SIZE", "2"}},
            "RANK is \"0\" of WORLD_SIZE \"2\": torchrun"),
        row("Mvapich", {}, {{"MV2_COMM_WORLD_RANK", "0"}, {"MV2_COMM_WORLD_SIZE", "2"}}, "MV2_"),
        row("Jsrun", {}, {{"JSM_NAMESPACE_RANK", "0"}, {"JSM_NAMESPACE_SIZE", "2"}}, "JSM_"),
        row("Flux", {}, {{"FLUX_TASK_RANK", "0"}, {"FLUX_JOB_SIZE", "2"}}, "FLUX_"),
        row("Horovod", {}, {{"HOROVOD_RANK", "0"}, {"HOROVOD_SIZE", "2"}}, "HOROVOD_"),
        row("Hostile", {},
            {{"OMPI_COMM_WORLD_RANK", std::string(10'000, '\n')},
             {"PMI_RANK", "\x1b[2J"},
             {"PMI_SIZE", "9"}},
            "PMI_RANK is \"\\x1b[2J\" of")),
    kNameOf);

INSTANTIATE_TEST_SUITE_P(
    RankOnly, Resolvers,
    ::testing::Values(
        row("OpenMpiAlone", {}, {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}},
            "local"),
        row("OpenMpiNamedLocal", named("local"),
            {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "4"}}, "local"),
        row("OpenMpiWithFlags", lists(Job::kPs, 0),
            {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "4"}}, "flags: ps 0" + kPw),
        row("RankOfSomethingElse", {}, {{"RANK", "0"}, {"WORLD_SIZE", "2"}}, "local")),
    kNameOf);

// ---- Several tasks that would each train alone ----

class Alone : public ::testing::TestWithParam<Case> {};

TEST_P(Alone, IsAWarning) {
  const Resolution resolution = find_cluster(GetParam().flags, GetParam().environment);
  EXPECT_EQ(resolution.resolver, "local");
  ASSERT_EQ(resolution.warnings.size(), GetParam().answer.empty() ? 0U : 1U);
  if (!GetParam().answer.empty()) {
    EXPECT_THAT(resolution.warnings[0], ::testing::StartsWith(GetParam().answer));
    EXPECT_THAT(resolution.warnings[0], ::testing::HasSubstr("trains alone"));
  }
  const auto listed = resolver_variables();
  for (const auto& [name, value] : GetParam().environment) {
    EXPECT_EQ(std::ranges::count(listed, std::string_view(name)), 1) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Resolvers, Alone,
    ::testing::Values(
        row("SlurmBatchBody", {},
            {{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}},
            "SLURM_NTASKS is \"4\", but this process is not a task of a step: srun starts all"),
        row("SlurmNodes", {}, {{"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NUM_NODES", "2"}}, "SLURM_JOB_"),
        row("SlurmOldNames", {}, {{"SLURM_JOB_ID", "7"}, {"SLURM_NPROCS", "2"}}, "SLURM_NPROCS"),
        row("SlurmHeterogeneousJob", {},
            {{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "1"}, {"SLURM_HET_SIZE", "2"}},
            "SLURM_HET_SIZE is"),
        row("SlurmJobOfOneTask", {},
            {{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "1"}, {"SLURM_JOB_NUM_NODES", "1"}}, ""),
        row("SlurmStepOfOneTask", {},
            {{"SLURM_JOB_ID", "7"},
             {"SLURM_JOB_NUM_NODES", "4"},
             {"SLURM_STEP_NODELIST", "n1"},
             {"SLURM_STEP_NUM_TASKS", "1"},
             {"SLURM_PROCID", "0"},
             {"PMIX_RANK", "0"}},
            ""),
        row("Pmix", {}, {{"PMIX_RANK", "3"}}, "PMIX_RANK is \"3\" (PMIx)"),
        row("Pbs", {}, {{"PBS_NP", "8"}}, "PBS_NP is \"8\" (PBS)"),
        row("GridEngine", {}, {{"NHOSTS", "2"}}, "NHOSTS is"),
        row("Lsf", {}, {{"LSB_DJOB_NUMPROC", "2"}}, "LSB_DJOB_NUMPROC is"),
        row("AwsBatch", {}, {{"AWS_BATCH_JOB_NUM_NODES", "2"}}, "AWS_BATCH_JOB_NUM_NODES is"),
        row("CloudRun", {}, {{"CLOUD_RUN_TASK_COUNT", "2"}}, "CLOUD_RUN_TASK_COUNT is"),
        row("CloudRunOfOne", {}, {{"CLOUD_RUN_TASK_COUNT", "1"}}, ""),
        row("GoogleBatch", {}, {{"BATCH_TASK_COUNT", "2"}}, "BATCH_TASK_COUNT is"),
        row("Volcano", {}, {{"VC_WORKER_NUM", "2"}}, "VC_WORKER_NUM is"),
        row("IndexedJobWithoutTaskHosts", {},
            {{"JOB_COMPLETION_INDEX", "1"}, {"KUBERNETES_SERVICE_HOST", "10.0.0.1"}},
            "JOB_COMPLETION_INDEX is set"),
        row("StatefulSetWithoutTaskHosts", {},
            {{"HOSTNAME", "mnist-worker-0.mnist"}, {"KUBERNETES_SERVICE_HOST", "10.0.0.1"}},
            "the host name \"mnist-worker-0\" is that of one pod of several"),
        row("AMachineWithSuchAName", {}, {{"HOSTNAME", "lab-worker-0"}}, "")),
    kNameOf);

TEST(Resolvers, CountsInASlurmBatchBodyNameSrun) {
  EXPECT_THAT(
      told({.ps = 1, .workers = 3}, {{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "4"}}),
      ::testing::HasSubstr("SLURM_NTASKS is \"4\", but this process is not a task of a step"));
}

TEST(Variables, AreListedForMainToRead) {
  const auto names = resolver_variables();
  for (const char* name : {"TF_CONFIG", "HOSTNAME", "SLURM_GTIDS", "PORT0"}) {
    EXPECT_EQ(std::ranges::count(names, std::string_view(name)), 1) << name;
  }
}

}  // namespace
}  // namespace disttf::net
