// A real S3 with whom something is wrong: requests that fail, answers that break off or are lost,
// a bucket that is full, another region.
#include <array>
#include <atomic>
#include <fstream>
#include <mutex>
#include <optional>
#include <set>

#include "tests/process/faulty_proxy.h"
#include "tests/process/on_store.h"
#include "tests/process/process_test.h"
#include "tests/process/s3_server.h"

namespace disttf::test_process {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;

using testing::HasSubstr;

class StoreFaultsTest : public OnStore<S3Server> {
 protected:
  static Variables through(const FaultyProxy& proxy) {
    return {{"AWS_ENDPOINT_URL", "http://127.0.0.1:" + std::to_string(proxy.port())}};
  }
  std::uint64_t newest_step() {
    Process& show = done({"checkpoint", "show", "s3://bucket/run"});
    return std::stoull(captured(show.standard_output(), "step +([0-9]+)"));
  }
};

// Of each request the first try.
class FirstTries {
 public:
  bool is_first(const std::string& first_line) {
    const std::scoped_lock lock(mutex_);
    return seen_.insert(first_line).second;
  }

 private:
  std::mutex mutex_;
  std::set<std::string> seen_;
};

TEST_F(StoreFaultsTest, ALargeFileGoesThereAndBackThoughEachRequestFailsOnce) {
  const std::string text = write("large.bin", 17'000'001);  // in two parts
  for (const Fault fault :
       {Fault::kError, Fault::kCutAnswer, Fault::kLostAnswer, Fault::kCutRequest}) {
    FirstTries tries;
    const FaultyProxy proxy(server_->port(), [&](const std::string& line) {
      return tries.is_first(line) ? fault : Fault::kNone;
    });
    const std::string place = "s3://bucket/large" + std::to_string(static_cast<int>(fault));
    done({"cp", "large.bin", place}, through(proxy));
    done({"cp", place, "back.bin"}, through(proxy));
    EXPECT_TRUE(read("back.bin") == text) << static_cast<int>(fault);
    EXPECT_GT(proxy.faults(), 3U);
  }
}

TEST_F(StoreFaultsTest, ARunIsSavedAndGoesOnThoughEachRequestFailsOnce) {
  FirstTries tries;
  std::atomic<unsigned> next = 0;
  const FaultyProxy proxy(server_->port(), [&](const std::string& line) {
    constexpr std::array kFaults = {Fault::kError, Fault::kCutAnswer, Fault::kLostAnswer,
                                    Fault::kCutRequest};
    return tries.is_first(line) ? kFaults[next++ % kFaults.size()] : Fault::kNone;
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
  done(flags(60, "s3://bucket/run"), through(proxy));
  EXPECT_EQ(newest_step(), 60U);
  Process& second = done(flags(100, "s3://bucket/run"), through(proxy));
  EXPECT_TRUE(says(second, "Restoring from s3://bucket/run/checkpoint-00000060"));
  EXPECT_EQ(newest_step(), 100U);
  EXPECT_EQ(done({"checkpoint", "verify", "s3://bucket/run"}).standard_output().find("damaged"),
            std::string::npos);
  // As on a disk.
  done(flags(60, "run"));
  EXPECT_EQ(weights_hash_in(second), weights_hash_in(done(flags(100, "run"))));
}

TEST_F(StoreFaultsTest, AStoreThatTakesNothingMoreCostsWarningsAndTheNewestIsFound) {
  std::atomic<bool> is_broken = false;
  const FaultyProxy proxy(server_->port(), [&](const std::string& line) {
    return is_broken && line.starts_with("P") ? Fault::kError : Fault::kNone;
  });
  Process& job = disttf(Words{"launch", "--workers=1", "--train_steps=1000000", "--log_every=1",
                              "--save_steps=5", "--train_dir=s3://bucket/run"} +
                            data_flags(),
                        through(proxy));
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
