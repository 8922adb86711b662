// The answers of a control address as people read them.
#include "roles/launch/shell/manage_text.h"

#include <gtest/gtest.h>

#include "roles/run/outcome.h"

namespace disttf::roles {
namespace {

TEST(ManageText, StatusIsALineAndATable) {
  EXPECT_EQ(text_of(ManageVerb::kStatus, R"({
    "state": "training", "pid": 4711, "since": "T1", "step": 821, "train_steps": 4000,
    "loss": 0.01184, "tasks": [
      {"task": "ps:0", "address": "127.0.0.1:40941", "state": "running", "pid": 8194,
       "restarts": 0, "since": "T2"},
      {"task": "worker:10", "address": "127.0.0.1:1", "state": "waiting", "pid": null,
       "restarts": 12, "since": "T3"}]})"),
            "launch 4711: training, step 821 of 4000, loss 0.0118, since T1\n"
            "TASK       ADDRESS          STATE    PID   RESTARTS  SINCE\n"
            "ps:0       127.0.0.1:40941  running  8194  0         T2\n"
            "worker:10  127.0.0.1:1      waiting  -     12        T3\n");
}

TEST(ManageText, StatusBeforeTheFirstStepHasNone) {
  EXPECT_EQ(text_of(ManageVerb::kStatus,
                    R"({"state": "training", "pid": 1, "since": "T", "step": null,
                        "train_steps": null, "loss": null, "tasks": []})"),
            "launch 1: training, since T\nTASK  ADDRESS  STATE  PID  RESTARTS  SINCE\n");
}

TEST(ManageText, EndpointsAreOneRowAJob) {
  EXPECT_EQ(text_of(ManageVerb::kEndpoints,
                    R"({"ps": ["a:1"], "worker": ["b:2", "c:3"], "control": ["/x.sock"]})"),
            "JOB      ADDRESSES\nps       a:1\nworker   b:2,c:3\ncontrol  /x.sock\n");
}

TEST(ManageText, PodsAreOneALine) {
  EXPECT_EQ(text_of(ManageVerb::kPodsList, R"(["ps:0", "worker:0"])"), "ps:0\nworker:0\n");
}

TEST(ManageText, ChangesAnswerWithTheirMessage) {
  for (const ManageVerb verb :
       {ManageVerb::kPodsRestart, ManageVerb::kPodsReplace, ManageVerb::kUpdate}) {
    EXPECT_EQ(text_of(verb, R"({"task": "ps:0", "message": "it is so"})"), "it is so\n");
  }
}

TEST(ManageText, AnythingElseIsASentence) {
  for (const char* wrong : {"", "[]", "{}", R"({"message": 1})", R"({"tasks": 1})"}) {
    for (const ManageVerb verb : {ManageVerb::kStatus, ManageVerb::kUpdate}) {
      EXPECT_THROW(static_cast<void>(text_of(verb, wrong)), Failure) << wrong;
    }
  }
}

}  // namespace
}  // namespace disttf::roles
