// The answers of a control address as people read them.
#include "roles/launch/shell/manage_text.h"

#include <gtest/gtest.h>

#include "run/outcome.h"

namespace disttf::roles {
namespace {

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

TEST(ManageText, APageIsItsLink) {
  EXPECT_EQ(text_of(ManageVerb::kPage, R"({"url": "http://127.0.0.1:1/?token=2"})"),
            "http://127.0.0.1:1/?token=2\n");
  EXPECT_THROW(static_cast<void>(text_of(ManageVerb::kPage, R"({"message": "no"})")), Failure);
}

TEST(ManageText, AnythingElseIsASentence) {
  for (const char* wrong : {"", "[]", "{}", R"({"message": 1})", R"({"tasks": 1})"}) {
    for (const ManageVerb verb : {ManageVerb::kPodsRestart, ManageVerb::kUpdate}) {
      EXPECT_THROW(static_cast<void>(text_of(verb, wrong)), Failure) << wrong;
    }
  }
}

}  // namespace
}  // namespace disttf::roles
