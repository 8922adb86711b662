// The identity of a task if an orchestrator numbers the tasks (Nomad, Kubernetes, Marathon) and
// --task_hosts gives their addresses: tables of valid and of broken settings.
#include <gmock/gmock.h>

#include <algorithm>
#include <string>

#include "tests/net/resolver_cases.h"

namespace disttf::net {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// Expects exactly this result.
class NumberedTasks : public ::testing::TestWithParam<Case> {};
TEST_P(NumberedTasks, Tell) {
  EXPECT_EQ(told(GetParam().flags, GetParam().environment), GetParam().answer);
}

// Expects a one-line message that begins like this.
class NumberedTasksRefuse : public ::testing::TestWithParam<Case> {};
TEST_P(NumberedTasksRefuse, InOneSentence) {
  const std::string sentence = told(GetParam().flags, GetParam().environment);
  EXPECT_THAT(sentence, StartsWith(GetParam().answer));
  EXPECT_LT(sentence.size(), 600U);
  EXPECT_TRUE(std::ranges::all_of(sentence, [](char c) { return c >= 0x20 && c < 0x7F; }));
}

// ---- Nomad, Kubernetes, Marathon, which number the tasks ----

[[nodiscard]] Environment nomad(const char* group, const char* index) {
  return {{"NOMAD_GROUP_NAME", group}, {"NOMAD_ALLOC_INDEX", index}};
}
[[nodiscard]] Environment indexed(const char* host, const char* index) {
  return {{"HOSTNAME", host}, {"JOB_COMPLETION_INDEX", index}};
}
[[nodiscard]] ClusterFlags with_chief(ClusterFlags flags) {
  flags.chief = true;
  return flags;
}

INSTANTIATE_TEST_SUITE_P(
    Table, NumberedTasks,
    ::testing::Values(
        row("NomadPs", pattern(), nomad("ps", "1"), "nomad: ps 1" + kM),
        row("NomadGroupThatEndsInTheJob", pattern(), nomad("mnist-worker", "2"),
            "nomad: worker 2" + kM),
        row("NomadOtherGroupWithTheCommand", with_job(pattern(), Job::kWorker), nomad("gpu", "0"),
            "nomad: worker 0" + kM),
        row("NomadOneGroupForAll", pattern("m-{place}:1"), nomad("all", "3"),
            "nomad: worker 1 of ps m-0:1,m-1:1 chief  worker m-2:1,m-3:1,m-4:1"),
        row("NomadLocal", {}, nomad("ps", "1"), "local"),
        row("IndexedJobOfAName", pattern(), indexed("m-worker-1", "1"),
            "indexed_job: worker 1" + kM),
        row("IndexedJobQualified", pattern(), indexed("m-ps-0.m.ml.svc.cluster.local", "0"),
            "indexed_job: ps 0" + kM),
        row("IndexedJobOnTheNodesNetwork", with_job(pattern(), Job::kPs),
            indexed("rack-worker-7", "1"), "indexed_job: ps 1" + kM),
        row("OneIndexedJobForAll", pattern("m-{place}.m:1"), indexed("m-4", "4"),
            "indexed_job: worker 2 of ps m-0.m:1,m-1.m:1 chief  worker m-2.m:1,m-3.m:1,m-4.m:1"),
        row("OneIndexedJobForAllOfAJobsName", pattern("re-worker-{place}.m:1"),
            indexed("re-worker-0", "0"),
            "indexed_job: ps 0 of ps re-worker-0.m:1,re-worker-1.m:1 chief  worker "
            "re-worker-2.m:1,re-worker-3.m:1,re-worker-4.m:1"),
        row("IndexedJobChief", with_chief(pattern("{job}{index}:1")), indexed("m-master-0", "0"),
            "indexed_job: chief 0 of ps ps0:1,ps1:1 chief chief0:1 worker "
            "worker0:1,worker1:1,worker2:1"),
        row("IndexedJobEvaluator", pattern(), indexed("m-evaluator-0", "0"),
            "indexed_job: evaluator 0" + kM),
        row("IndexedJobBeforeHostName", pattern(), indexed("m-worker-1", "1"),
            "indexed_job: worker 1" + kM),
        row("NomadBeforeIndexedJob", pattern(), both(nomad("ps", "1"), indexed("m-worker-1", "1")),
            "nomad: ps 1" + kM),
        row("Marathon", pattern(), {{"MARATHON_APP_ID", "/mnist/worker-0"}},
            "marathon: worker 0" + kM),
        row("MarathonChiefWithoutNumber", with_chief(pattern("m-{place}:{port}")),
            {{"MARATHON_APP_ID", "/mnist/chief"}},
            "marathon: chief 0 of ps m-0:2222,m-1:2223 chief m-2:2224 worker "
            "m-3:2225,m-4:2226,m-5:2227"),
        row("StatefulSet", pattern(), {{"HOSTNAME", "mnist-worker-2"}},
            "statefulset: worker 2" + kM),
        row("StatefulSetLetterCase", pattern(), {{"HOSTNAME", "mnist-PS-1"}},
            "statefulset: ps 1" + kM),
        row("StatefulSetWithoutPattern", {}, {{"HOSTNAME", "mnist-worker-2"}}, "local"),
        row("NamedStatefulSet", named("statefulset", pattern()),
            both(nomad("ps", "1"), {{"HOSTNAME", "mnist-worker-2"}}),
            "statefulset: worker 2" + kM)),
    kNameOf);

INSTANTIATE_TEST_SUITE_P(
    Table, NumberedTasksRefuse,
    ::testing::Values(
        row("NomadIndex", pattern(), nomad("ps", "one"),
            "NOMAD_ALLOC_INDEX is \"one\"; expected a whole number from 0 to 9999"),
        row("NomadIndexBeyond", pattern(), nomad("ps", "2"),
            "NOMAD_ALLOC_INDEX makes this ps 2, but --ps is 2; indexes are below it"),
        row("NomadOtherGroup", pattern(), nomad("gpu", "0"),
            "--job_name: missing; NOMAD_ALLOC_INDEX is 0, but NOMAD_GROUP_NAME does not say"),
        row("NomadAgainstTheCommand", with_job(pattern(), Job::kWorker), nomad("ps", "0"),
            "NOMAD_GROUP_NAME: this is ps 0 there, but the command line says worker"),
        row("NomadChiefThatIsNotCounted", pattern(), nomad("chief", "0"),
            "NOMAD_ALLOC_INDEX makes this chief 0, but --chief, which says that there is one, is "
            "missing"),
        row("NomadTwoEvaluators", pattern(), nomad("evaluator", "1"),
            "NOMAD_ALLOC_INDEX makes this evaluator 1, but there can be only one"),
        row("NomadPlaceBeyond", pattern("m-{place}:1"), nomad("all", "5"),
            "NOMAD_ALLOC_INDEX is 5, but --ps, --chief and --workers count 5 tasks"),
        row("NomadNamedWithoutPattern", named("nomad"), nomad("ps", "0"), "--task_hosts: missing"),
        row("NomadWithoutCounts", {.task_hosts = "{job}{index}:1"}, nomad("ps", "0"),
            "--ps: missing"),
        row("NomadNamedButNotThere", named("nomad", pattern()), {},
            "--resolver: nomad needs NOMAD_ALLOC_INDEX with NOMAD_GROUP_NAME, which is not there"),
        row("IndexedJobIndex", pattern(), indexed("m-ps-0", "99999999999999999999"),
            "JOB_COMPLETION_INDEX is \"99999999999999999999\"; expected"),
        row("IndexedJobOfNoJobsName", pattern(), indexed("m-0", "0"),
            "--job_name: missing; JOB_COMPLETION_INDEX is 0, but HOSTNAME does not say"),
        row("IndexedJobOfTwoPodsForOnePs",
            {.job = Job::kPs, .ps = 1, .workers = 1, .task_hosts = "{job}:1"}, indexed("m-1", "1"),
            "JOB_COMPLETION_INDEX makes this ps 1, but --ps is 1"),
        row("MarathonName", pattern(), {{"MARATHON_APP_ID", "/mnist/trainer"}},
            "MARATHON_APP_ID is \"/mnist/trainer\"; expected an app named like /mnist/worker-0"),
        row("MarathonPort", pattern(), {{"MARATHON_APP_ID", "/mnist/worker-0"}, {"PORT0", "http"}},
            "PORT0 is \"http\"; expected a whole number"),
        row("StatefulSetPadded", pattern(), {{"HOSTNAME", "mnist-worker-02"}},
            "--job_name: missing"),
        row("StatefulSetBeyond", pattern(), {{"HOSTNAME", "mnist-worker-3"}},
            "HOSTNAME makes this worker 3, but --workers is 3")),
    kNameOf);

TEST(Marathon, WarnsOfAPortThatTheOthersWillNotTry) {
  const Resolution resolution =
      find_cluster(pattern(), {{"MARATHON_APP_ID", "/mnist/worker-0"}, {"PORT0", "31007"}});
  EXPECT_THAT(resolution.warnings, ElementsAre(HasSubstr("PORT0 is 31007, but this task is "
                                                         "m-worker-0.m:2222 to the others")));
  EXPECT_THAT(
      find_cluster(pattern(), {{"MARATHON_APP_ID", "/mnist/worker-0"}, {"PORT0", "2222"}}).warnings,
      IsEmpty());
}

TEST(Local, IsWarnedOfWhereTasksWereNumbered) {
  EXPECT_THAT(find_cluster({}, indexed("m-0", "0")).warnings,
              ElementsAre("JOB_COMPLETION_INDEX is set, but without --task_hosts this task trains "
                          "alone"));
  EXPECT_THAT(find_cluster({}, {{"HOSTNAME", "gpu-worker-3"}}).warnings, IsEmpty());
  EXPECT_THAT(find_cluster(named("local"), indexed("m-0", "0")).warnings, IsEmpty());
}

// ---- Facts ----

TEST(Facts, NameWhatSaidThem) {
  const Resolution resolution = find_cluster(pattern(), nomad("mnist-worker", "2"));
  std::vector<std::string> facts;
  for (const Fact& fact : resolution.facts) {
    facts.push_back(fact.what + "=" + fact.value + " " + fact.from);
  }
  EXPECT_THAT(facts, ElementsAre("job=worker NOMAD_GROUP_NAME", "index=2 NOMAD_ALLOC_INDEX",
                                 "ps=m-ps-0.m:2222,m-ps-1.m:2222 --task_hosts",
                                 "workers=m-worker-0.m:2222,m-worker-1.m:2222,m-worker-2.m:2222 "
                                 "--task_hosts"));
}

}  // namespace
}  // namespace disttf::net
