// The sandbox of a task: the files, folders and ports that its flags allow.
#include "main/commands/sandbox_needs.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <optional>

#include "tests/data/scratch.h"
#include "tests/main/command_lines.h"

namespace disttf {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::Not;
using ::testing::Optional;
using ::testing::UnorderedElementsAre;

namespace fs = std::filesystem;

roles::SandboxPolicy sandbox_policy(const std::string& line, const Environment& environment = {}) {
  return parse(line, environment).action->sandbox(environment).value();
}

const std::string kLists =
    " --ps_hosts=127.0.0.1:1001 --worker_hosts=127.0.0.1:2001,127.0.0.1:2002";

class SandboxPolicyOf : public testing::Test {
 protected:
  [[nodiscard]] std::string at(const std::string& name) const {
    return (scratch_.path() / name).string();
  }
  // A worker with its data in the directory of the test.
  [[nodiscard]] std::string worker(const std::string& flags = "") const {
    return "worker --task_index=1 --data_dir=" + at("data") + kLists + " " + flags;
  }

 private:
  data::test::ScratchDirectory scratch_;
};

TEST_F(SandboxPolicyOf, APsListensOnItsPortAndConnectsToThoseOfTheLists) {
  const roles::SandboxPolicy found = sandbox_policy("ps --task_index=0" + kLists);
  EXPECT_THAT(found.listens_on, Optional(UnorderedElementsAre(1001)));
  EXPECT_THAT(found.connects_to, Optional(UnorderedElementsAre(53, 1001, 2001, 2002)));
}

TEST_F(SandboxPolicyOf, ATrainerReachesTheMirrorsBesides) {
  const roles::SandboxPolicy found = sandbox_policy(worker("--metrics_port=9100"));
  EXPECT_THAT(found.listens_on, Optional(UnorderedElementsAre(2002, 9100)));
  EXPECT_THAT(found.connects_to, Optional(UnorderedElementsAre(53, 80, 443, 1001, 2001, 2002)));
}

TEST_F(SandboxPolicyOf, WhereAnotherServerSaysWhereToGoAnyPortIsReached) {
  EXPECT_EQ(sandbox_policy(worker("--data_url=http://mirror:8000/")).connects_to, std::nullopt);
  EXPECT_EQ(sandbox_policy(worker("--data=https://server/x.csv")).connects_to, std::nullopt);
  EXPECT_EQ(sandbox_policy(worker(), {{"https_proxy", "http://proxy:3128"}}).connects_to,
            std::nullopt);
  EXPECT_EQ(
      sandbox_policy("ps --task_index=0 --train_dir=hdfs://node:8020/run" + kLists).connects_to,
      std::nullopt);
}

TEST_F(SandboxPolicyOf, FoldersThatATaskWritesAreMadeAndNoOthers) {
  const roles::SandboxPolicy found =
      sandbox_policy("worker --task_index=0 --data_dir=" + at("data") +
                     " --train_dir=" + at("run") + " --log_dir=" + at("events") + kLists);
  for (const char* name : {"data", "run", "events"}) {
    EXPECT_THAT(found.changed, Contains(fs::path(at(name))));
    EXPECT_TRUE(fs::is_directory(at(name)));
  }
  EXPECT_THAT(found.changed, Not(Contains(fs::temp_directory_path())));
  const roles::SandboxPolicy of_another =
      sandbox_policy(worker("--dataset=digits --train_dir=" + at("x")));
  EXPECT_FALSE(fs::exists(at("x"))) << "only the chief may create it";
  EXPECT_THAT(of_another.changed, Each(Not(fs::path(at("x")))));
}

TEST_F(SandboxPolicyOf, AModelMayBeChangedByALinkOrMadeAnew) {
  fs::create_directories(at("releases/1"));
  fs::create_directories(at("names"));
  fs::create_directories(at("data/now/model"));
  fs::create_directory_symlink("../releases/1", at("names/current"));
  const roles::SandboxPolicy of_link = sandbox_policy("serve " + at("names/current"));
  EXPECT_THAT(of_link.read, Contains(fs::path(at("releases"))));
  EXPECT_THAT(of_link.read, Contains(fs::path(at("names"))));
  EXPECT_THAT(sandbox_policy("serve " + at("later/run")).read, Contains(fs::path(at("later"))));
  // A symbolic link in the path, as in a Kubernetes ConfigMap.
  fs::create_directory_symlink("now", at("data/..data"));
  fs::create_directory_symlink("..data/model", at("data/model"));
  const roles::SandboxPolicy of_map = sandbox_policy("serve " + at("data/model"));
  EXPECT_THAT(of_map.read, Contains(fs::path(at("data"))));
  // But not the user's whole home directory.
  fs::create_directory(at("run"));
  const roles::SandboxPolicy at_home = sandbox_policy("serve " + at("run"), {{"HOME", at("")}});
  EXPECT_THAT(at_home.read, Not(Contains(fs::path(at("run")).parent_path())));
}

TEST_F(SandboxPolicyOf, ASecretMayBeChangedByRenaming) {
  fs::create_directory(at("keys"));
  data::test::write(at("keys/now"), data::test::bytes_of(std::string(32, 's')));
  fs::permissions(at("keys/now"), fs::perms::owner_read);
  const roles::SandboxPolicy found =
      sandbox_policy("ps --task_index=0 --secret_file=" + at("keys/now") + kLists);
  EXPECT_THAT(found.read, Contains(fs::path(at("keys"))));
}

TEST_F(SandboxPolicyOf, TokensMayBeChangedByRenaming) {
  fs::create_directory(at("web"));
  const roles::SandboxPolicy found = sandbox_policy(
      "ps --task_index=0 --metrics_port=0 --token_file=" + at("web/tokens") + kLists);
  EXPECT_THAT(found.read, Contains(fs::path(at("web"))));
}

TEST_F(SandboxPolicyOf, TheTokenThatCredentialsOfAWorkloadNameIsRead) {
  fs::create_directory(at("tokens"));
  const std::string credentials =
      R"({"type": "external_account", "audience": "pool", "token_url": "https://sts/v1/token",
          "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
          "credential_source": {"file": ")" +
      at("tokens/now") + R"("}})";
  data::test::write(at("who.json"), data::test::bytes_of(credentials));
  const roles::SandboxPolicy found =
      sandbox_policy("ps --task_index=0 --train_dir=gs://bucket/run" + kLists,
                     {{"GOOGLE_APPLICATION_CREDENTIALS", at("who.json")}});
  EXPECT_THAT(found.read, Contains(fs::path(at("tokens"))));
}

TEST_F(SandboxPolicyOf, LinksThatLieInAFolderOfDataAreFollowed) {
  fs::create_directory(at("data"));
  data::test::write(at("elsewhere"), data::test::bytes_of("x"));
  fs::create_symlink(at("elsewhere"), at("data/link"));
  EXPECT_THAT(sandbox_policy(worker()).read, Contains(fs::path(at("data/link"))));
}

TEST_F(SandboxPolicyOf, AServiceReadsItsModelsAndConnectsNowhere) {
  fs::create_directory(at("models"));
  const roles::SandboxPolicy found = sandbox_policy("serve " + at("models") + " --port=8501");
  EXPECT_THAT(found.read, Contains(fs::path(at("models"))));
  EXPECT_THAT(found.changed, Not(Contains(fs::path(at("models")))));
  EXPECT_THAT(found.listens_on, Optional(UnorderedElementsAre(8501)));
  EXPECT_THAT(found.connects_to, Optional(UnorderedElementsAre(53)));
}

TEST_F(SandboxPolicyOf, AServiceReadsTheFoldersOfItsCertificateAndKey) {
  fs::create_directory(at("tls"));
  const roles::SandboxPolicy found =
      sandbox_policy("serve " + at("models") + " --tls_cert=" + at("tls/cert.pem") +
                     " --tls_key=" + at("tls/key.pem"));
  EXPECT_THAT(found.read, Contains(fs::path(at("tls"))));
}

TEST_F(SandboxPolicyOf, AShownPageReadsItsRunsAndChangesNothing) {
  fs::create_directory(at("run"));
  const roles::SandboxPolicy found =
      sandbox_policy("show " + at("run") + " --page --page_port=8080");
  EXPECT_THAT(found.read, Contains(fs::path(at("run"))));
  EXPECT_THAT(found.changed,
              UnorderedElementsAre("/proc/self/fd/1", "/proc/self/fd/2", "/dev/null"));
  EXPECT_THAT(found.listens_on, Optional(UnorderedElementsAre(8080)));
  EXPECT_THAT(found.connects_to, Optional(UnorderedElementsAre(53)));
}

TEST_F(SandboxPolicyOf, ModelsThatComeToBeThereLaterAreReadWhereTheyWillBe) {
  fs::create_directory(at("later"));
  EXPECT_THAT(sandbox_policy("serve " + at("later/models/x")).read,
              Contains(fs::path(at("later"))));
}

}  // namespace
}  // namespace disttf
