// The real binary with a real S3 server and an emulator of Google Cloud Storage.
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/process/bucket_server.h"
#include "tests/process/cluster_on_loopback.h"
#include "tests/process/on_store.h"
#include "tests/process/process.h"
#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class StoreTest : public OnStore<S3Server> {};

class BucketTest : public OnBucket {
 protected:
  [[nodiscard]] Words saves() const { return {"--train_dir=" + at("run"), "--save_steps=10"}; }
};

INSTANTIATE_TEST_SUITE_P(, BucketTest, each_bucket(), name_of_bucket);

TEST_P(BucketTest, AFileGoesThereAndComesBack) {
  const std::string text = write("a file+.bin", 1'234'567);
  Process& up = done({"cp", "a file+.bin", at("some/where/")});
  EXPECT_THAT(up.standard_output(), HasSubstr("Copied 1 file, 1.2 MB, to " + at("some/where/")));
  EXPECT_THAT(done({"ls", at("some/where/")}).standard_output(), HasSubstr("a file+.bin"));
  done({"cp", at("some/where/a file+.bin"), "back.bin"});
  EXPECT_TRUE(read("back.bin") == text);
}

TEST_P(BucketTest, ALargeFileGoesInPartsAndComesBack) {
  const std::string text = write("large.bin", 50'000'001);
  done({"cp", "large.bin", at("large.bin")});
  done({"cp", at("large.bin"), "back.bin"});
  EXPECT_TRUE(read("back.bin") == text);
}

TEST_P(BucketTest, ADirectoryGoesThereAndIsListed) {
  fs::create_directories(scratch() / "dir" / "inner");
  write("dir/a", 10);
  write("dir/empty", 0);
  write("dir/inner/b", 20);
  done({"cp", "dir", at("copy")});
  const std::string listed = done({"ls", at("copy")}).standard_output();
  EXPECT_THAT(listed, AllOf(HasSubstr("            10  20"), HasSubstr("  inner/\n")));
  const json found = json::parse(done({"ls", at("copy/"), "--json"}).standard_output());
  ASSERT_EQ(found["entries"].size(), 3U);
  EXPECT_EQ(found["entries"][0]["name"], "a");
  EXPECT_EQ(found["entries"][0]["bytes"], 10);
  EXPECT_EQ(found["entries"][2]["directory"], true);
  done({"cp", at("copy"), "back"});
  EXPECT_EQ(read("back/inner/b"), read("dir/inner/b"));
  EXPECT_EQ(read("back/empty"), "");
  EXPECT_TRUE(fs::exists(scratch() / "back" / "empty"));
}

TEST_F(StoreTest, WhatIsWrongIsSaidInOneSentence) {
  EXPECT_THAT(refusal({"ls", "s3://bucket/none"}, kExitUsage),
              HasSubstr("\"s3://bucket/none\": does not exist"));
  EXPECT_THAT(refusal({"ls", "ftp://host/x"}, kExitUsage),
              HasSubstr("ls: \"ftp://host/x\" has the unknown scheme \"ftp\""));
  EXPECT_THAT(refusal({"ls"}, kExitUsage), HasSubstr("ls: PLACE is missing"));
  EXPECT_THAT(refusal({"cp", "a"}, kExitUsage), HasSubstr("cp: TO is missing"));
  EXPECT_THAT(refusal({"ls", "s3://no-such-bucket/x"}, kExitBadData),
              HasSubstr("there is no such bucket"));
  EXPECT_THAT(refusal({"ls", "s3://bucket"}, kExitUsage, {{"AWS_ENDPOINT_URL", "nonsense"}}),
              HasSubstr("AWS_ENDPOINT_URL: \"nonsense\" does not begin with http"));
}

TEST_F(StoreTest, CredentialsThatAreWrongOrMissingAreSaidToBe) {
  const std::string wrong =
      refusal({"ls", "s3://bucket"}, kExitBadData, {{"AWS_SECRET_ACCESS_KEY", "not the secret"}});
  EXPECT_THAT(wrong, AllOf(HasSubstr("403"), HasSubstr("SignatureDoesNotMatch"),
                           HasSubstr("denies access"), Not(HasSubstr("not the secret"))));
  const std::string missing = refusal({"ls", "s3://bucket"}, kExitBadData,
                                      {{"AWS_SECRET_ACCESS_KEY", ""},
                                       {"AWS_CONFIG_FILE", "/nowhere"},
                                       {"AWS_SHARED_CREDENTIALS_FILE", "/nowhere"}});
  EXPECT_THAT(missing, AllOf(HasSubstr("no credentials were found"), HasSubstr("AWS_PROFILE"),
                             HasSubstr("metadata")));
}

TEST_F(StoreTest, CredentialsComeFromAProfile) {
  std::ofstream(scratch() / "credentials")
      << "[default]\naws_access_key_id = x\naws_secret_access_key = y\n"
         "[mine]\naws_access_key_id = AKIDTEST\naws_secret_access_key = a secret of the test\n";
  std::ofstream(scratch() / "config") << "[profile mine]\nregion = us-east-1\nendpoint_url = "
                                      << server_->variables().at("AWS_ENDPOINT_URL") << "\n";
  write("a", 5);
  Process& process = disttf({"cp", "a", "s3://bucket/a", "--log_level=debug"},
                            {{"AWS_SHARED_CREDENTIALS_FILE", "credentials"},
                             {"AWS_CONFIG_FILE", "config"},
                             {"AWS_PROFILE", "mine"},
                             {"AWS_ACCESS_KEY_ID", ""},
                             {"AWS_SECRET_ACCESS_KEY", ""},
                             {"AWS_REGION", ""},
                             {"AWS_ENDPOINT_URL", ""}});
  EXPECT_TRUE(exits(process, kExitDone));
  EXPECT_THAT(process.standard_error(), AllOf(HasSubstr("credentials are from a profile"),
                                              Not(HasSubstr("a secret of the test"))));
}

TEST_P(BucketTest, AStoreThatIsAwayIsSaidToBe) {
  server_->kill();
  EXPECT_THAT(refusal({"ls", server_->place()}, kExitBadData),
              HasSubstr("the store is unavailable"));
}

// --- checkpoints ---

Words store_run(unsigned steps) {
  return {"launch", "--workers=2", "--train_steps=" + std::to_string(steps),
          "--print_weights_hash"};
}

TEST_P(BucketTest, ARunIsSavedThereAndGoesOnFromIt) {
  const Words flags = store_run(150) + saves() + data_flags();
  kill_all_of(disttf(flags + Words{"--debug_delay_ms=20"}), 3);
  EXPECT_THAT(done({"checkpoint", "ls", at("run")}).standard_output(),
              AllOf(HasSubstr("checkpoint-000000"), Not(HasSubstr("damaged"))));
  Process& second = done(flags);
  EXPECT_TRUE(says(second, "Restoring from " + at("run/checkpoint-00[0-9-]+: global step ")));
  EXPECT_TRUE(says(second, "Saved checkpoint at global step 150 in " + at("run")));
  Process& undisturbed = run("undisturbed", store_run(150) + data_flags());
  EXPECT_TRUE(exits(undisturbed, kExitDone));
  EXPECT_EQ(weights_hash_in(second), weights_hash_in(undisturbed));
  done({"export", at("run"), "--format=safetensors", "--output=model.safetensors"});
  EXPECT_TRUE(fs::exists(scratch() / "model.safetensors"));
}

TEST_P(BucketTest, EachPsWritesItsRange) {
  done(store_run(120) + saves() + data_flags() + Words{"--ps=2", "--sharded_checkpoint"});
  Process& verify = done({"checkpoint", "verify", at("run")});
  EXPECT_THAT(verify.standard_output(), HasSubstr("checkpoint-00000120: whole"));
  EXPECT_THAT(done({"ls", at("run/checkpoint-00000120")}).standard_output(),
              AllOf(HasSubstr("model-00001-of-00002.safetensors"),
                    HasSubstr("model-00002-of-00002.safetensors")));
}

// Kills the writer at random points, repeatedly.
TEST_P(BucketTest, AWriterThatIsKilledLeavesWholeCheckpoints) {
  const unsigned kills = number_from_variable("DISTTF_STORE_KILLS", 4);
  const Words flags = lasting_run(1, at("run"));
  std::uint64_t newest = 0;
  for (unsigned i = 0; i < kills; ++i) {
    kill_all_of(disttf(flags), 2 + i % 3);
    const std::string shown = done({"checkpoint", "show", at("run")}).standard_output();
    const std::uint64_t step = std::stoull(captured(shown, "step +([0-9]+)"));
    EXPECT_GE(step, newest);
    newest = step;
    EXPECT_EQ(done({"checkpoint", "verify", at("run")}).standard_output().find("damaged"),
              std::string::npos);
  }
}

TEST_P(BucketTest, AStoreThatIsAwayForAWhileCostsAWarningAndNotTheRun) {
  Process& job = disttf(lasting_run(5, at("run")));
  ASSERT_TRUE(says(job, "Saved checkpoint at global step [1-9]"));
  server_->kill();
  ASSERT_TRUE(says(job, "no checkpoint was saved: .*the store is unavailable"));
  const std::size_t saved = count_of(job.standard_error(), "Saved checkpoint");
  server_->start();
  EXPECT_TRUE(says_times(job, saved + 1, "Saved checkpoint at global step"));
  job.send(SIGTERM);
  EXPECT_TRUE(exits(job, kExitTerminated));
}

TEST_P(BucketTest, ARunWaitsForAStoreThatComesBackRatherThanBeginAnew) {
  const Words flags = saves() + data_flags();
  done(store_run(120) + flags);
  server_->kill();
  Process& job = disttf(store_run(130) + flags);
  ASSERT_TRUE(says(job, "the store is unavailable.*trying again"));
  server_->start();
  EXPECT_TRUE(says(job, "Restoring from " + at("run/checkpoint-00000120")));
  EXPECT_TRUE(exits(job, kExitDone));
}

// --- data ---

TEST_P(BucketTest, DataIsReadFromThereAndCopiedAgainOnlyWhereItHasChanged) {
  std::string table = "a,b,label\n";
  for (int i = 0; i < 300; ++i) {
    table += std::to_string(i % 10) + "," + std::to_string(i % 7) + "," +
             (i % 10 > 4 ? "yes" : "no") + "\n";
  }
  std::ofstream(scratch() / "table.csv") << table;
  done({"cp", "table.csv", at("table.csv")});
  const Words inspect = {"data", "inspect", at("table.csv"), "--data_dir=here"};
  Process& first = done(inspect);
  EXPECT_THAT(first.standard_error(), HasSubstr("Copying 1 of 1 files from " + at("table.csv")));
  EXPECT_THAT(first.standard_output(), HasSubstr("300"));
  EXPECT_THAT(done(inspect).standard_error(), Not(HasSubstr("Copying")));
  std::ofstream(scratch() / "table.csv") << table << "1,1,yes\n";
  done({"cp", "table.csv", at("table.csv")});
  Process& third = done(inspect);
  EXPECT_THAT(third.standard_error(), HasSubstr("Copying 1 of 1 files"));
  EXPECT_THAT(third.standard_output(), HasSubstr("301"));
}

TEST_P(BucketTest, AKnownDataSetIsTakenFromThere) {
  if (!has_mnist()) GTEST_SKIP() << "MNIST is not beside the source tree";
  for (const std::string& name : mnist_gz_names()) {
    done({"cp", mnist_directory() / name, at("mnist/")});
  }
  Process& download = done({"download", "--dataset=mnist", "--data_dir=" + at("mnist"),
                            "--data_url=http://127.0.0.1:9/"});
  EXPECT_THAT(download.standard_error(),
              HasSubstr("Copying 4 files from " + at("mnist") + " to ./input_data"));
  EXPECT_TRUE(fs::exists(scratch() / "input_data" / mnist_gz_names().front()));
}

TEST_F(StoreTest, NoSecretIsInWhatIsSaid) {
  Process& job = done(store_run(120) + data_flags() +
                      Words{"--train_dir=s3://bucket/run", "--save_steps=10", "--log_level=debug"});
  EXPECT_EQ((job.standard_output() + job.standard_error()).find("a secret of the test"),
            std::string::npos);
}

// Read-only URLs over http: a real server without ranges, and one with ranges.

namespace fs = std::filesystem;

constexpr const char* kPython = "/usr/bin/python3";

// Uses Python's own server, over a folder.
class HttpPlaceTest : public ProcessTest {
 protected:
  void SetUp() override {
    if (!fs::exists(kPython)) GTEST_SKIP() << kPython << ", whose server is asked, is not there";
    fs::create_directories(served());
    run_program(kPython,
                {"-m", "http.server", std::to_string(port_.number()), "--bind", "127.0.0.1",
                 "--directory", served()},
                "server");
    ASSERT_TRUE(wait_until_listening(port_.number()));
  }
  [[nodiscard]] fs::path served() const { return scratch() / "served"; }
  [[nodiscard]] std::string at(const std::string& name) const {
    return "http://127.0.0.1:" + std::to_string(port_.number()) + "/" + name;
  }
  Process& done(const Words& words) {
    Process& process = run(words.front(), words);
    EXPECT_TRUE(exits(process, kExitDone));
    return process;
  }
  std::string refusal(const Words& words, int exit_code) {
    Process& process = run(words.front(), words);
    EXPECT_TRUE(exits(process, exit_code));
    return process.standard_error();
  }

  const ReservedPort port_;
};

TEST_F(HttpPlaceTest, DataIsReadByItsNameAndCopiedAgainOnlyWhereItHasChanged) {
  std::string table = "a,b,label\n";
  for (int i = 0; i < 300; ++i) {
    table += std::to_string(i % 10) + "," + std::to_string(i % 7) + "," +
             (i % 10 > 4 ? "yes" : "no") + "\n";
  }
  std::ofstream(served() / "table.csv") << table;
  const Words inspect = {"data", "inspect", at("table.csv"), "--data_dir=here"};
  Process& first = done(inspect);
  EXPECT_THAT(first.standard_error(), HasSubstr("Copying 1 of 1 files from " + at("table.csv")));
  EXPECT_THAT(first.standard_output(), HasSubstr("300"));
  EXPECT_THAT(done(inspect).standard_error(), Not(HasSubstr("Copying")));
  std::ofstream(served() / "table.csv") << table << "1,1,yes\n";
  EXPECT_THAT(done(inspect).standard_output(), HasSubstr("301"));
  EXPECT_THAT(done({"ls", at("table.csv")}).standard_output(), HasSubstr("table.csv"));
}

TEST_F(HttpPlaceTest, AKnownDataSetIsTakenFromThere) {
  if (!has_mnist()) GTEST_SKIP() << "MNIST is not beside the source tree";
  fs::create_directories(served() / "mnist");
  for (const std::string& name : mnist_gz_names()) {
    fs::copy_file(mnist_directory() / name, served() / "mnist" / name);
  }
  Process& download = done({"download", "--dataset=mnist", "--data_dir=" + at("mnist"),
                            "--data_url=http://127.0.0.1:9/"});
  EXPECT_THAT(download.standard_error(),
              HasSubstr("Copying 4 files from " + at("mnist") + " to ./input_data"));
  EXPECT_TRUE(fs::exists(scratch() / "input_data" / mnist_gz_names().front()));
}

TEST_F(HttpPlaceTest, WhatIsWrongIsSaidInOneSentence) {
  std::ofstream(scratch() / "a") << "text";
  EXPECT_THAT(refusal({"launch", "--workers=1", "--train_dir=" + at("run")}, kExitUsage),
              HasSubstr("--train_dir: \"" + at("run") +
                        "\" is read-only, as all http and https URLs are; expected a path, or a "
                        "URL like s3://bucket/prefix"));
  EXPECT_THAT(refusal({"cp", "a", at("a")}, kExitUsage),
              HasSubstr("cp: \"" + at("a") + "\" is read-only"));
  EXPECT_THAT(refusal({"ls", at("none")}, kExitUsage), HasSubstr("does not exist"));
  EXPECT_THAT(refusal({"ls", at("a?b=c")}, kExitUsage), HasSubstr("has a query or a fragment"));
  EXPECT_THAT(refusal({"ls", "http://user:secret@host/a"}, kExitUsage),
              HasSubstr("which is not HOST or HOST:PORT"));
  const ReservedPort nobody;
  EXPECT_THAT(
      refusal({"ls", "http://127.0.0.1:" + std::to_string(nobody.number()) + "/a"}, kExitBadData),
      HasSubstr("the store is unavailable"));
}

class HttpRangesTest : public OnStore<GcsServer> {};

TEST_F(HttpRangesTest, ALargeFileIsReadInPieces) {
  const std::string text = write("large.bin", 20'000'001);
  done({"cp", "large.bin", "gs://bucket/large.bin"});
  done({"cp",
        "http://127.0.0.1:" + std::to_string(server_->port()) +
            "/download/storage/v1/b/bucket/o/large.bin",
        "back"});
  EXPECT_TRUE(read("back") == text);
}

}  // namespace
}  // namespace disttf::test_process
