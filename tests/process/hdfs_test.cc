// The real binary with a real HDFS. Two Java processes start for each test, which takes longer than
// the checks, so each test checks much.
#include <atomic>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/process/faulty_proxy.h"
#include "tests/process/hdfs_server.h"
#include "tests/process/on_store.h"
#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class HdfsTest : public OnStore<HdfsServer> {
 protected:
  [[nodiscard]] std::string at(const std::string& path) const { return server_->url() + path; }
};

TEST_F(HdfsTest, FilesGoThereAndComeBackAndAreListed) {
  fs::create_directories(scratch() / "dir" / "inner");
  write("dir/a name+%41.bin", 10);
  write("dir/empty", 0);
  write("dir/inner/b", 20);
  const std::string large = write("dir/large", 40'000'001);  // in three pieces
  done({"cp", "dir", at("/copy/of")});
  const json found = json::parse(done({"ls", at("/copy/of/"), "--json"}).standard_output());
  ASSERT_EQ(found["entries"].size(), 4U);  // without temporary files
  EXPECT_EQ(found["entries"][0]["name"], "a name+%41.bin");
  EXPECT_EQ(found["entries"][0]["bytes"], 10);
  EXPECT_EQ(found["entries"][2]["directory"], true);
  EXPECT_EQ(found["entries"][3]["bytes"], 40'000'001);
  done({"cp", at("/copy"), "back"});
  EXPECT_TRUE(read("back/of/large") == large);
  EXPECT_EQ(read("back/of/a name+%41.bin"), read("dir/a name+%41.bin"));
  EXPECT_EQ(read("back/of/inner/b"), read("dir/inner/b"));
  EXPECT_TRUE(fs::exists(scratch() / "back" / "of" / "empty"));
  // Replaces an existing file.
  write("dir/inner/b", 30);
  done({"cp", "dir/inner/b", at("/copy/of/inner/b")});
  EXPECT_THAT(done({"ls", at("/copy/of/inner/b")}).standard_output(), HasSubstr(" 30 "));

  EXPECT_THAT(refusal({"ls", at("/none")}, kExitUsage), HasSubstr("does not exist"));
  const std::string denied =
      refusal({"cp", "dir/inner/b", at("/b")}, kExitBadData, {{"HADOOP_USER_NAME", "guest"}});
  EXPECT_THAT(denied, AllOf(HasSubstr("AccessControlException: Permission denied: user=guest"),
                            HasSubstr("denies access")));
}

// Two NameNodes, of which the first does not exist.
TEST_F(HdfsTest, ANameserviceIsWhatHadoopsConfigurationSays) {
  const ReservedPort nobody;
  fs::create_directories(scratch() / "conf");
  const auto property = [](const std::string& name, const std::string& value) {
    return "<property><name>" + name + "</name><value>" + value + "</value></property>";
  };
  std::ofstream(scratch() / "conf" / "hdfs-site.xml")
      << "<configuration>" << property("dfs.ha.namenodes.pair", "one, two")
      << property("dfs.namenode.http-address.pair.one",
                  "127.0.0.1:" + std::to_string(nobody.number()))
      << property("dfs.namenode.http-address.pair.two",
                  "127.0.0.1:" + std::to_string(server_->http_port()))
      << property("dfs.namenode.http-address", "0.0.0.0:" + std::to_string(server_->http_port()))
      << "</configuration>";
  const Variables conf = {{"HADOOP_CONF_DIR", "conf"}};
  EXPECT_THAT(done({"ls", "hdfs://pair/"}, conf).standard_output(), HasSubstr("probe"));
  const std::string away = refusal({"ls", "webhdfs://127.0.0.1:" + std::to_string(nobody.number())},
                                   kExitBadData, {{"HADOOP_TOKEN", "bm8gdG9rZW4"}});
  EXPECT_THAT(away, AllOf(HasSubstr("the store is unavailable"), Not(HasSubstr("bm8gdG9rZW4"))));
  EXPECT_THAT(done({"ls", "hdfs://127.0.0.1:8020/"}, conf).standard_output(), HasSubstr("probe"));
}

// A token is renewed by rewriting its file. (This NameNode requires none: a proxy stands in for one
// that does.)
TEST_F(HdfsTest, ATokenThatHasEndedIsReadAgainFromItsFile) {
  const std::string said =
      R"({"RemoteException": {"exception": "InvalidToken", "message": "token is expired"}})";
  std::atomic<bool> has_ended = true;
  const auto answer = "HTTP/1.1 403 Forbidden\r\nContent-Length: " + std::to_string(said.size()) +
                      "\r\n\r\n" + said;
  const FaultyProxy once(server_->http_port(),
                         [&](const ProxiedRequest&) {
                           return has_ended.exchange(false) ? Fault::kAnswer : Fault::kNone;
                         },
                         {.answer = answer});
  done({"ls", "webhdfs://127.0.0.1:" + std::to_string(once.port()) + "/"});
  EXPECT_EQ(once.faults(), 1U);
  const FaultyProxy always(server_->http_port(),
                           [](const ProxiedRequest&) { return Fault::kAnswer; },
                           {.answer = answer});
  EXPECT_THAT(
      refusal({"ls", "webhdfs://127.0.0.1:" + std::to_string(always.port()) + "/"}, kExitBadData),
      AllOf(HasSubstr("token is expired"), HasSubstr("the credentials have expired")));
  EXPECT_EQ(always.faults(), 2U);
}

Words hdfs_run(unsigned steps) {
  return {"launch", "--workers=2", "--train_steps=" + std::to_string(steps),
          "--print_weights_hash"};
}

TEST_F(HdfsTest, ARunIsSavedThereAndGoesOnFromIt) {
  const Words flags =
      hdfs_run(400) + data_flags() +
      Words{"--train_dir=" + at("/runs/one"), "--save_steps=10", "--ps=2", "--sharded_checkpoint"};
  kill_all_of(disttf(flags + Words{"--debug_delay_ms=20"}), 2);
  EXPECT_THAT(done({"checkpoint", "ls", at("/runs/one")}).standard_output(),
              AllOf(HasSubstr("checkpoint-000000"), Not(HasSubstr("damaged"))));
  Process& second = done(flags);
  EXPECT_TRUE(says(second, "Restoring from webhdfs://.*/checkpoint-00[0-9-]+: global step "));
  EXPECT_TRUE(says(second, "Saved checkpoint at global step 400 in webhdfs://"));
  Process& undisturbed = run("undisturbed", hdfs_run(400) + data_flags() + Words{"--ps=2"});
  EXPECT_TRUE(exits(undisturbed, kExitDone));
  EXPECT_EQ(weights_hash_in(second), weights_hash_in(undisturbed));
  EXPECT_THAT(done({"checkpoint", "verify", at("/runs/one")}).standard_output(),
              ContainsRegex("checkpoint-00000400(-2)?: whole"));
  done({"export", at("/runs/one"), "--format=safetensors", "--output=model.safetensors"});
  EXPECT_TRUE(fs::exists(scratch() / "model.safetensors"));
}

// Kills the writer at random points, repeatedly.
TEST_F(HdfsTest, AWriterThatIsKilledLeavesWholeCheckpoints) {
  const unsigned kills = number_from_variable("DISTTF_STORE_KILLS", 4);
  const Words flags = lasting_run(1, at("/run"));
  std::uint64_t newest = 0;
  for (unsigned i = 0; i < kills; ++i) {
    kill_all_of(disttf(flags), 2 + i % 3);
    const std::string shown = done({"checkpoint", "show", at("/run")}).standard_output();
    const std::uint64_t step = std::stoull(captured(shown, "step +([0-9]+)"));
    EXPECT_GE(step, newest);
    newest = step;
    EXPECT_EQ(done({"checkpoint", "verify", at("/run")}).standard_output().find("damaged"),
              std::string::npos);
  }
}

TEST_F(HdfsTest, ANodeThatIsAwayForAWhileCostsAWarningAndNotTheRun) {
  Process& job = disttf(lasting_run(5, at("/run")));
  ASSERT_TRUE(says(job, "Saved checkpoint at global step [1-9]"));
  server_->kill_data_node();
  ASSERT_TRUE(says(job, "no checkpoint was saved: .*the store is unavailable"));
  std::size_t saved = count_of(job.standard_error(), "Saved checkpoint");
  server_->start_data_node();
  EXPECT_TRUE(says_times(job, saved + 1, "Saved checkpoint at global step"));
  const std::size_t warned = count_of(job.standard_error(), "no checkpoint was saved");
  server_->kill_name_node();
  ASSERT_TRUE(says_times(job, warned + 1, "no checkpoint was saved: .*the store is unavailable"));
  saved = count_of(job.standard_error(), "Saved checkpoint");
  server_->start_name_node();
  EXPECT_TRUE(says_times(job, saved + 1, "Saved checkpoint at global step"));
  job.send(SIGTERM);
  EXPECT_TRUE(exits(job, kExitTerminated));
  EXPECT_EQ(done({"checkpoint", "verify", at("/run")}).standard_output().find("damaged"),
            std::string::npos);
}

}  // namespace
}  // namespace disttf::test_process
