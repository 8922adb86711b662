// Stores with faults: requests that fail, responses that break off or are lost, a full bucket,
// another region.
#include <array>
#include <atomic>
#include <mutex>
#include <set>

#include "tests/process/bucket_server.h"
#include "tests/process/faulty_proxy.h"
#include "tests/process/on_store.h"
#include "tests/process/process_test.h"
#include "tests/support/mirror_server.h"

namespace disttf::test_process {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;

using testing::HasSubstr;

class StoreFaultsTest : public OnStore<S3Server> {};

class BucketFaultsTest : public OnBucket {
 protected:
  Variables through(const FaultyProxy& proxy) { return server_->variables_at(proxy.port()); }
  std::uint64_t newest_step() {
    Process& show = done({"checkpoint", "show", at("run")});
    return std::stoull(captured(show.standard_output(), "step +([0-9]+)"));
  }
};

INSTANTIATE_TEST_SUITE_P(, BucketFaultsTest, each_bucket(), name_of_bucket);

// Affects the first attempt of each request.
class FirstTries {
 public:
  bool is_first(const ProxiedRequest& request) {
    const std::scoped_lock lock(mutex_);
    return seen_.insert(request.first_line).second;
  }

 private:
  std::mutex mutex_;
  std::set<std::string> seen_;
};

TEST_P(BucketFaultsTest, ALargeFileGoesThereAndBackThoughEachRequestFailsOnce) {
  const std::string text = write("large.bin", 17'000'001);  // in two parts
  for (const Fault fault :
       {Fault::kError, Fault::kCutAnswer, Fault::kLostAnswer, Fault::kCutRequest}) {
    FirstTries tries;
    const FaultyProxy proxy(server_->port(), [&](const ProxiedRequest& request) {
      return tries.is_first(request) ? fault : Fault::kNone;
    });
    const std::string place = at("large") + std::to_string(static_cast<int>(fault));
    done({"cp", "large.bin", place}, through(proxy));
    done({"cp", place, "back.bin"}, through(proxy));
    EXPECT_TRUE(read("back.bin") == text) << static_cast<int>(fault);
    EXPECT_GT(proxy.faults(), 3U);
  }
}

TEST_P(BucketFaultsTest, ARunIsSavedAndGoesOnThoughEachRequestFailsOnce) {
  FirstTries tries;
  std::atomic<unsigned> next = 0;
  const FaultyProxy proxy(server_->port(), [&](const ProxiedRequest& request) {
    constexpr std::array kFaults = {Fault::kError, Fault::kCutAnswer, Fault::kLostAnswer,
                                    Fault::kCutRequest};
    return tries.is_first(request) ? kFaults[next++ % kFaults.size()] : Fault::kNone;
  });
  const auto flags = [](int steps, const std::string& place) {
    return Words{"launch",
                 "--workers=1",
                 "--train_steps=" + std::to_string(steps),
                 "--print_weights_hash",
                 "--save_steps=20",
                 "--train_dir=" + place} +
           data_flags();
  };
  done(flags(60, at("run")), through(proxy));
  EXPECT_EQ(newest_step(), 60U);
  Process& second = done(flags(100, at("run")), through(proxy));
  EXPECT_TRUE(says(second, "Restoring from " + at("run/checkpoint-00000060")));
  EXPECT_EQ(newest_step(), 100U);
  EXPECT_EQ(done({"checkpoint", "verify", at("run")}).standard_output().find("damaged"),
            std::string::npos);
  // The reference run on a disk.
  done(flags(60, "run"));
  EXPECT_EQ(weights_hash_in(second), weights_hash_in(done(flags(100, "run"))));
}

TEST_P(BucketFaultsTest, AStoreThatTakesNothingMoreCostsWarningsAndTheNewestIsFound) {
  std::atomic<bool> is_broken = false;
  const FaultyProxy proxy(server_->port(), [&](const ProxiedRequest& request) {
    return is_broken && request.first_line.starts_with("P") ? Fault::kError : Fault::kNone;
  });
  Process& job = disttf(lasting_run(5, at("run")), through(proxy));
  ASSERT_TRUE(says(job, "Saved checkpoint at global step [1-9]"));
  is_broken = true;
  ASSERT_TRUE(says_times(job, 2, "no checkpoint was saved: .*the store answered 500"));
  const std::uint64_t before = newest_step();
  EXPECT_GE(before, 5U);
  const std::size_t saved = count_of(job.standard_error(), "Saved checkpoint");
  is_broken = false;
  EXPECT_TRUE(says_times(job, saved + 1, "Saved checkpoint at global step"));
  job.send(SIGTERM);
  EXPECT_TRUE(exits(job, kExitTerminated));
  EXPECT_GT(newest_step(), before);
}

TEST_P(BucketFaultsTest, AServerThatDiesInTheMiddleOfAWriteCostsAWarningAndNotTheRun) {
  std::atomic<bool> is_to_die = false;
  std::atomic<bool> is_dead = false;
  const FaultyProxy proxy(
      server_->port(),
      [&](const ProxiedRequest& request) {
        // Of the saved files, only this one is large.
        const bool is_model = request.first_line.starts_with("P") &&
                              request.first_line.find("safetensors") != std::string::npos &&
                              request.first_line.find("index.json") == std::string::npos;
        return is_model && is_to_die.exchange(false) ? Fault::kDeath : Fault::kNone;
      },
      {.kill = [&] {
        server_->kill();
        is_dead = true;
      }});
  Process& job = disttf(lasting_run(5, at("run")), through(proxy));
  ASSERT_TRUE(says(job, "Saved checkpoint at global step [1-9]"));
  is_to_die = true;
  ASSERT_TRUE(says(job, "no checkpoint was saved: .*the store is unavailable"));
  ASSERT_TRUE(is_dead);
  const std::size_t saved = count_of(job.standard_error(), "Saved checkpoint");
  server_->start();
  EXPECT_TRUE(says_times(job, saved + 1, "Saved checkpoint at global step"));
  job.send(SIGTERM);
  EXPECT_TRUE(exits(job, kExitTerminated));
  EXPECT_EQ(done({"checkpoint", "verify", at("run")}).standard_output().find("damaged"),
            std::string::npos);
}

// The client sends the request again after 15 s without a byte of the answer.
TEST_P(BucketFaultsTest, AServerThatIsSilentForAWhileIsAskedAgain) {
  const std::string text = write("a", 3'000'000);
  done({"cp", "a", at("a")});
  server_->stop();
  Process& copy = disttf({"cp", at("a"), "back", "--log_level=debug"});
  EXPECT_TRUE(says(copy, "try 2 of 3"));
  server_->go_on();
  EXPECT_TRUE(exits(copy, kExitDone));
  EXPECT_TRUE(read("back") == text);
}

// The response takes longer than the timeout of other requests: the proxy holds it back until
// another command, started after the request, has timed out on a silent server.
TEST_P(BucketFaultsTest, AServerThatTakesLongToMakeOneFileOfPartsIsNotAskedTwice) {
  std::atomic<unsigned> asked = 0;
  const test_support::MirrorServer mute(
      [](const auto&, const auto& connection) { connection.wait_for_hangup(); });
  const auto wait_for_another = [&] {
    Process& other =
        disttf({"ls", at(""), "--log_level=debug"}, server_->variables_at(mute.port()));
    EXPECT_TRUE(says(other, "try 2 of 3"));
    other.send(SIGKILL);
  };
  const FaultyProxy proxy(server_->port(),
                          [&](const ProxiedRequest& request) {
                            const std::string& line = request.first_line;
                            const bool makes_one = line.starts_with("POST ") &&
                                                   (line.find("uploadId=") != std::string::npos ||
                                                    line.find("/compose?") != std::string::npos);
                            asked += makes_one ? 1 : 0;
                            return makes_one ? Fault::kLateAnswer : Fault::kNone;
                          },
                          {.wait = wait_for_another});
  const std::string text = write("large.bin", 17'000'001);
  done({"cp", "large.bin", at("large")}, through(proxy));
  EXPECT_EQ(asked, 1U);
  done({"cp", at("large"), "back.bin"});
  EXPECT_TRUE(read("back.bin") == text);
}

TEST_F(StoreFaultsTest, CredentialsThatHaveEndedAreFetchedAnewWhereTheyCanBe) {
  std::atomic<unsigned> answered = 0;
  const test_support::MirrorServer credentials([&](const auto&, const auto& connection) {
    ++answered;
    connection.respond("200 OK",
                       R"({"AccessKeyId": "AKIDTEST", "SecretAccessKey": "a secret of the test"})");
  });
  std::atomic<bool> have_ended = true;
  const std::string said =
      "<Error><Code>ExpiredToken</Code><Message>The token has expired.</Message></Error>";
  const FaultyProxy proxy(server_->port(),
                          [&](const ProxiedRequest&) {
                            return have_ended.exchange(false) ? Fault::kAnswer : Fault::kNone;
                          },
                          {.answer = "HTTP/1.1 403 Forbidden\r\nContent-Length: " +
                                     std::to_string(said.size()) + "\r\n\r\n" + said});
  Variables variables = server_->variables_at(proxy.port());
  for (const char* name : {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}) variables[name] = "";
  for (const char* name : {"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"}) {
    variables[name] = "/nowhere";
  }
  variables["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = credentials.url("/credentials");
  write("a", 1000);
  done({"cp", "a", "s3://bucket/a"}, variables);
  EXPECT_EQ(answered, 2U);
  // Static credentials are the same when they are looked up again, so the second attempt fails,
  // too.
  const FaultyProxy always(server_->port(), [](const ProxiedRequest&) { return Fault::kAnswer; },
                           {.answer = "HTTP/1.1 403 Forbidden\r\nContent-Length: " +
                                      std::to_string(said.size()) + "\r\n\r\n" + said});
  EXPECT_THAT(refusal({"ls", "s3://bucket"}, kExitBadData, server_->variables_at(always.port())),
              AllOf(HasSubstr("ExpiredToken: The token has expired."),
                    HasSubstr("the credentials have expired")));
  EXPECT_EQ(always.faults(), 2U);
}

TEST_F(StoreFaultsTest, AFullBucketIsSaidAndLeavesWhatIsThere) {
  if (!S3Server::can_be_small()) GTEST_SKIP() << "this user may not mount a file system";
  server_.emplace(scratch() / "small", "20m");
  const std::string text = write("a", 5'000'000);
  write("large", 30'000'000);
  done({"cp", "a", "s3://bucket/a"});
  Process& full = disttf({"cp", "large", "s3://bucket/large"});
  EXPECT_TRUE(exits(full, kExitBadData));
  EXPECT_THAT(full.standard_error(), HasSubstr("s3://bucket/large: the store answered 5"));
  Process& replaced = disttf({"cp", "large", "s3://bucket/a"});
  EXPECT_TRUE(exits(replaced, kExitBadData));
  done({"cp", "s3://bucket/a", "back"});
  EXPECT_TRUE(read("back") == text);
  EXPECT_EQ(done({"ls", "s3://bucket"}).standard_output().find("large"), std::string::npos);
}

TEST_F(StoreFaultsTest, AnotherRegionIsSaidInASentence) {
  Process& process = disttf({"ls", "s3://bucket"}, {{"AWS_REGION", "eu-west-1"}});
  EXPECT_TRUE(exits(process, kExitBadData));
  EXPECT_THAT(process.standard_error(),
              AllOf(HasSubstr("GET s3://bucket: the store answered 4"), HasSubstr("us-east-1")));
}

}  // namespace
}  // namespace disttf::test_process
