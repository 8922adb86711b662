#include "net/wire/run_task_request.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "net/wire/frame.h"
#include "tests/net/wire_bytes.h"

namespace disttf::net {
namespace {

RunTaskRequest example() {
  return {.start = std::chrono::seconds(300),
          .peer = std::chrono::seconds(60),
          .worker = std::chrono::seconds(61),
          .heartbeat_timeout = std::chrono::seconds(10),
          .data = 3};
}

// Decodes the example's bytes with one byte changed.
std::error_code changed_run(std::size_t at, std::uint8_t value) {
  std::vector<std::byte> bytes = encode(example());
  bytes.at(at) = std::byte{value};
  RunTaskRequest out;
  return decode(bytes, out);
}

TEST(RunTaskRequest, HasTheBytesOfTheDocument) {
  const std::vector<std::byte> body = encode(example());
  EXPECT_EQ(hex(body), "2c0100003c0000003d0000000a00000003000000");
}

TEST(RunTaskRequest, IsReadBack) {
  RunTaskRequest out;
  ASSERT_FALSE(decode(encode(example()), out));
  EXPECT_EQ(out, example());
}

TEST(RunTaskRequest, RejectsTimeoutsThatAreNoneOrTooLong) {
  for (const std::size_t at : {0U, 4U, 8U, 12U}) {
    EXPECT_EQ(changed_run(at + 3, 1), WireError::kBadBody) << "more than a day, at " << at;
    RunTaskRequest none = example();
    (at == 0   ? none.start
     : at == 4 ? none.peer
     : at == 8 ? none.worker
               : none.heartbeat_timeout) = {};
    RunTaskRequest out;
    EXPECT_EQ(decode(encode(none), out), WireError::kBadBody) << "0, at " << at;
  }
}

TEST(RunTaskRequest, RejectsValuesThatMeanNothing) {
  EXPECT_EQ(changed_run(16, 0), WireError::kBadBody) << "data set";
  EXPECT_EQ(changed_run(17, 1), WireError::kBadBody) << "reserved";
  EXPECT_EQ(changed_run(19, 1), WireError::kBadBody) << "reserved";
}

TEST(RunTaskRequest, HasNothingButItsNumbers) {
  std::vector<std::byte> bytes = encode(example());
  RunTaskRequest out;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(decode(std::span(bytes).first(size), out), WireError::kBadBody) << size;
  }
  bytes.push_back(std::byte{'x'});
  EXPECT_EQ(decode(bytes, out), WireError::kBadBody);
  EXPECT_EQ(out, RunTaskRequest{}) << "a rejected body changed the output";
}

TEST(RunTaskRequest, IsOfAClusterWithTheDriverAsItsChief) {
  Cluster servers;
  servers.ps = {{"a", 1}};
  servers.workers = {{"b", 1}, {"c", 1}};
  const Cluster run = driven(servers);
  EXPECT_EQ(run.trainer(0), (TaskId{.job = Job::kChief, .index = 0}));
  EXPECT_EQ(run.trainer_count(), 3U);
  EXPECT_EQ(run.ps, servers.ps);
  EXPECT_EQ(run.workers, servers.workers);
  EXPECT_NE(hash_of(run), hash_of(servers));
}

TEST(TaskEnd, HasTheBytesOfTheDocument) {
  EXPECT_EQ(hex(encode(TaskEnd{.exit_code = 3, .last_line = "no"})), "03000000000000006e6f");
}

TEST(TaskEnd, IsReadBackSafeToShow) {
  TaskEnd out;
  ASSERT_FALSE(decode(encode(TaskEnd{.signal = 9, .last_line = "two\nlines"}), out));
  EXPECT_EQ(out, (TaskEnd{.signal = 9, .last_line = "two lines"}));
}

TEST(TaskEnd, RejectsWhatIsTooShortOrTooLongOrNoEnd) {
  TaskEnd out;
  EXPECT_EQ(decode(std::vector<std::byte>(7), out), WireError::kBadBody);
  EXPECT_EQ(decode(std::vector<std::byte>(9 + kMaxLastLineBytes), out), WireError::kBadBody);
  std::vector<std::byte> bytes(8);
  bytes[1] = std::byte{1};
  EXPECT_EQ(decode(bytes, out), WireError::kBadBody) << "exit code 256";
  bytes[1] = {};
  bytes[4] = std::byte{65};
  EXPECT_EQ(decode(bytes, out), WireError::kBadBody) << "signal 65";
  EXPECT_EQ(out, TaskEnd{});
  const TaskEnd longest{.last_line = std::string(kMaxLastLineBytes + 1, 'x')};
  EXPECT_EQ(encode(longest).size(), 8 + kMaxLastLineBytes);
}

}  // namespace
}  // namespace disttf::net
