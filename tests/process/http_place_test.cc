// Read-only URLs over http: a real server without ranges, and one with ranges.
#include <fstream>
#include <string>

#include "tests/process/cluster_on_loopback.h"
#include "tests/process/listening.h"
#include "tests/process/on_store.h"
#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

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
